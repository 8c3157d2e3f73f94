/** The release of the client has no call for what the scenario does. */
public final class Unsupported extends Exception {
    Unsupported(String why) {
        super(why);
    }
}
