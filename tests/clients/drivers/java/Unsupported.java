/** The release of the client has no call for the scenario. */
public final class Unsupported extends Exception {
    Unsupported(String reason) {
        super(reason);
    }
}
