import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Runs many of Kafka's command line tools in one JVM, one after the other, as most of a tool's time is the JVM's start.
 *
 * A line on standard input is one run: the tool's standard input in base64, the class, and its arguments, separated by
 * tabs. The line on standard output has the exit code, and the tool's standard output and standard error in base64,
 * separated by tabs.
 */
public final class ToolRunner {
    private static final Redirect OUT = new Redirect();
    private static final Redirect ERR = new Redirect();

    /** Scala's Console and loggers keep their first stream, so the stream stays and its target is reset. */
    private static final class Redirect extends OutputStream {
        private final ByteArrayOutputStream target = new ByteArrayOutputStream();
        private boolean closed;

        @Override
        public synchronized void write(int b) {
            if (!closed) {
                target.write(b);
            }
        }

        @Override
        public synchronized void write(byte[] bytes, int at, int length) {
            if (!closed) {
                target.write(bytes, at, length);
            }
        }

        synchronized void endOfRun() {
            closed = true;
        }

        synchronized String take() {
            String taken = Base64.getEncoder().encodeToString(target.toByteArray());
            target.reset();
            closed = false;
            return taken;
        }
    }

    /** Ends a tool that exits the JVM. Some tools catch it and continue; their later output is dropped. */
    private static final class Exited extends RuntimeException {
        Exited() {
            super(null, null, false, false);
        }
    }

    private static final Set<Thread> JVM_HOOKS = new HashSet<>();
    private static Integer exitCode;

    private static void exit(int code) {
        if (exitCode == null) {
            exitCode = code;
            runHooks();
            System.out.flush();
            System.err.flush();
            OUT.endOfRun();
            ERR.endOfRun();
        }
        throw new Exited();
    }

    public static void main(String[] args) throws IOException {
        PrintStream results = System.out;
        throwOnExit();
        System.setOut(new PrintStream(OUT, true));
        System.setErr(new PrintStream(ERR, true));
        JVM_HOOKS.addAll(hooks().keySet());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(words[0])));
            int code = run(words[1], Arrays.copyOfRange(words, 2, words.length));
            results.println(code + "\t" + OUT.take() + "\t" + ERR.take());
            results.flush();
        }
    }

    private static int run(String tool, String[] args) {
        exitCode = null;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) args);
            exit(0);
        } catch (Exited e) {
            return exitCode;
        } catch (InvocationTargetException e) {
            if (exitCode == null) {
                e.getCause().printStackTrace();
                exitCode = 1;
            }
        } catch (ReflectiveOperationException e) {
            e.printStackTrace();
            exitCode = 2;
        }
        return exitCode;
    }

    /** Replaces the procedures of Kafka's Exit class, by which all its tools exit. */
    private static void throwOnExit() {
        try {
            Class<?> exit = exitClass();
            Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
            Object thrower = Proxy.newProxyInstance(exit.getClassLoader(), new Class<?>[] {procedure}, (self, m, a) -> {
                if (m.getName().equals("execute")) {
                    exit((Integer) a[0]);
                }
                return m.getName().equals("hashCode") ? (Object) 1 : null;
            });
            for (String name : new String[] {"setExitProcedure", "setHaltProcedure"}) {
                Method set = exit.getMethod(name, procedure);
                set.invoke(null, thrower);
            }
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("this release has no Exit class to hook", e);
        }
    }

    private static Class<?> exitClass() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.utils.internals.Exit"); // from 4.4
        } catch (ClassNotFoundException e) {
            return Class.forName("org.apache.kafka.common.utils.Exit");
        }
    }

    /** Returns the current shutdown hooks of the JVM: some tools print their summary in one. */
    @SuppressWarnings("unchecked")
    private static Map<Thread, Thread> hooks() {
        try {
            Field hooks = Class.forName("java.lang.ApplicationShutdownHooks").getDeclaredField("hooks");
            hooks.setAccessible(true);
            return (Map<Thread, Thread>) hooks.get(null);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("this JVM keeps its shutdown hooks elsewhere", e);
        }
    }

    private static void runHooks() {
        for (Thread hook : new ArrayList<>(hooks().keySet())) {
            if (!JVM_HOOKS.contains(hook)) {
                hooks().remove(hook);
                hook.run();
            }
        }
    }
}
