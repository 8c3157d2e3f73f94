import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.io.UnsupportedEncodingException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.protocol.Errors;

/** One scenario with one broker, and its output lines. */
public final class Run {
    private static final int UNKNOWN = -1;
    private static final PrintStream OUT = utf8();
    final String scenario;
    final String bootstrap;
    /** The name of the topic and of the group. */
    final String name;

    Run(String scenario, String bootstrap, String name) {
        this.scenario = scenario;
        this.bootstrap = bootstrap;
        this.name = name;
    }

    void report(String result, Object value) {
        print("\"result\": " + json(result) + ", \"value\": " + json(value));
    }

    void end(String end, String reason) {
        print("\"end\": " + json(end) + (reason == null ? "" : ", \"reason\": " + json(reason)));
    }

    private void print(String rest) {
        OUT.println("{\"scenario\": " + json(scenario) + ", " + rest + "}");
    }

    /** Returns the error code of a call, 0 if it succeeds; the name of the exception if it has no error code. */
    static Object errorOf(Call call) throws Exception {
        try {
            call.run();
            return 0;
        } catch (RuntimeException | ExecutionException failed) {
            return error(failed);
        }
    }

    static Object error(Throwable failed) {
        Throwable cause = failed;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        int code = Errors.forException(cause).code();
        return code == UNKNOWN ? cause.getClass().getSimpleName() : (Object) code;
    }

    private static String json(Object value) {
        StringBuilder out = new StringBuilder();
        if (value instanceof Map) {
            ((Map<?, ?>) value).forEach((key, item) -> comma(out).append(json(key.toString())).append(": ").append(json(item)));
            return "{" + out + "}";
        }
        if (value instanceof List) {
            ((List<?>) value).forEach(item -> comma(out).append(json(item)));
            return "[" + out + "]";
        }
        return value instanceof String ? quoted((String) value) : String.valueOf(value);
    }

    private static StringBuilder comma(StringBuilder out) {
        return out.length() == 0 ? out : out.append(", ");
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            out.append(c < ' ' ? String.format("\\u%04x", (int) c) : c == '"' || c == '\\' ? "\\" + c : String.valueOf(c));
        }
        return out.append('"').toString();
    }

    private static PrintStream utf8() {
        try {
            return new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        } catch (UnsupportedEncodingException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** A call that may throw. */
    interface Call {
        void run() throws Exception;
    }
}
