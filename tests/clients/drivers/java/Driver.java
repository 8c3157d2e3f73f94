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
 * One source for every release from 0.9.0.1 on, compiled against the release. Scenarios without an API in old releases
 * have their own classes, which are not compiled then; calls with changed signatures are in Calls.
 */
public final class Driver {
    private static final int CONCURRENCY = 6;
    private static final List<String> CLASSES = Arrays.asList(
        "RecordScenarios", "MemberScenarios", "CommitScenarios", "TopicScenarios", "GroupScenarios", "OffsetScenarios",
        "TransactionScenarios");

    public static void main(String[] args) throws InterruptedException {
        ExecutorService pool = Executors.newFixedThreadPool(CONCURRENCY);
        for (String scenario : Arrays.asList(args).subList(2, args.length)) {
            pool.execute(() -> runScenario(new Run(scenario, args[0], args[1] + "-" + scenario)));
        }
        pool.shutdown();
        pool.awaitTermination(Long.MAX_VALUE, TimeUnit.NANOSECONDS);
        System.exit(0); // members of a failed scenario may still run
    }

    private static void runScenario(Run run) {
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

    /** Returns the method of a scenario: createTopic for create-topic. */
    private static Method method(String scenario) throws Unsupported {
        StringBuilder name = new StringBuilder();
        for (String word : scenario.split("-")) {
            boolean isFirst = name.length() == 0;
            name.append(isFirst ? word.charAt(0) : Character.toUpperCase(word.charAt(0))).append(word.substring(1));
        }
        for (String holder : CLASSES) {
            try {
                return Class.forName(holder).getDeclaredMethod(name.toString(), Run.class);
            } catch (ClassNotFoundException | NoSuchMethodException missing) {
                continue; // in another class, or in a class that is not compiled for this release
            }
        }
        throw new Unsupported("this release has no call for it");
    }
}
