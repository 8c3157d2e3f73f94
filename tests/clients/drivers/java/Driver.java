import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * The scenarios with kafka-clients: BOOTSTRAP PREFIX SCENARIO...
 *
 * One source for every release from 0.9.0.1 on. It is compiled against the release; what the release has no API for at
 * all is in a class of its own that is left out then, and what only changed its signature is in Calls.
 */
public final class Driver {
    private static final int AT_ONCE = 6;
    private static final List<String> CLASSES = Arrays.asList(
        "RecordScenarios", "MemberScenarios", "CommitScenarios", "TopicScenarios", "GroupScenarios", "OffsetScenarios");

    public static void main(String[] args) throws InterruptedException {
        ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE);
        for (String scenario : Arrays.asList(args).subList(2, args.length)) {
            pool.execute(() -> carryOut(new Run(scenario, args[0], args[1] + "-" + scenario)));
        }
        pool.shutdown();
        pool.awaitTermination(Long.MAX_VALUE, TimeUnit.NANOSECONDS);
        System.exit(0); // members of a scenario that failed may still be there
    }

    private static void carryOut(Run run) {
        try {
            method(run.scenario).invoke(null, run);
            run.end("ok", null);
        } catch (Unsupported | ReflectiveOperationException failed) {
            Throwable cause = failed instanceof InvocationTargetException ? failed.getCause() : failed;
            if (cause instanceof Unsupported) {
                run.end("unsupported", cause.getMessage());
            } else {
                cause.printStackTrace();
                run.end("failed", cause.toString());
            }
        }
    }

    /** The method of the scenario's name: createTopic is create-topic's. */
    private static Method method(String scenario) throws Unsupported {
        StringBuilder name = new StringBuilder();
        for (String word : scenario.split("-")) {
            boolean isFirst = name.length() == 0;
            name.append(isFirst ? word.charAt(0) : Character.toUpperCase(word.charAt(0))).append(word.substring(1));
        }
        for (String holder : CLASSES) {
            try {
                return Class.forName(holder).getDeclaredMethod(name.toString(), Run.class);
            } catch (ClassNotFoundException | NoSuchMethodException notThere) {
                continue; // in another class, or in one that this release is compiled without
            }
        }
        throw new Unsupported("this release has no call for it");
    }
}
