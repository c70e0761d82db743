import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.Pattern;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Runs the cases against the server behind a name server, many at a time, and prints a row for each.
 * Arguments: name server address, {@code sundial} or {@code rocketmq} (what answers there), and a pattern of case names.
 * Ends with 0 when no case failed.
 */
public final class Suite {
    /** What a case does; it throws when something is not as it should be. */
    interface Body { void run(Case c) throws Exception; }

    /** A row: a case, how long it may take, and what it waits for if the server is known not to do it yet. */
    static final class Row {
        final String name;
        final int seconds;
        final Body body;
        String waitsFor;
        boolean alone, longer;
        String result = "", note = "";
        long millis;

        Row(String name, int seconds, Body body) { this.name = name; this.seconds = seconds; this.body = body; }
        /** Other cases must not run beside it. */
        Row alone() { alone = true; return this; }
        /** It takes so much longer against RocketMQ, on purpose (see the case). */
        Row longerThere() { longer = true; return this; }
        /** Sundial does not serve it yet: tried only with PENDING=1. */
        Row waitsFor(String what) { waitsFor = what; return this; }
    }

    static String namesrv, broker, brokerName, cluster;
    static boolean rocketmq;
    static DefaultMQAdminExt admin;
    static DefaultMQProducer producer;
    static DefaultMQPullConsumer reader;
    static final String run = Long.toString(System.currentTimeMillis() % 100_000_000, 36);


    public static void main(String[] args) throws Exception {
        namesrv = args[0];
        rocketmq = args[1].equals("rocketmq");
        Pattern only = Pattern.compile(args.length > 2 ? args[2] : ".");
        boolean pending = rocketmq || System.getenv("PENDING") != null;
        long began = System.currentTimeMillis();
        open();
        List<Row> rows = new ArrayList<>();
        Sending.cases(rows);
        Transactions.cases(rows);
        Consuming.cases(rows);
        Retrying.cases(rows);
        Ordering.cases(rows);
        Pulling.cases(rows);
        Filtering.cases(rows);
        Replying.cases(rows);
        Tracing.cases(rows);
        Admin.cases(rows);
        rows.removeIf(r -> !only.matcher(r.name).find());
        int width = Integer.getInteger("suite.width", 14);
        ExecutorService pool = Executors.newCachedThreadPool(r -> { Thread t = new Thread(r, "case"); t.setDaemon(true); return t; });
        Semaphore slots = new Semaphore(width);
        List<Future<?>> running = new ArrayList<>();
        List<Row> order = new ArrayList<>(rows); // long ones first, so that the end is not one case alone
        order.sort(Comparator.comparingInt(r -> -r.seconds));
        for (Row r : order) {
            if (r.waitsFor != null && !pending) { r.result = "later"; r.note = r.waitsFor; continue; }
            if (r.alone) continue;
            slots.acquire();
            running.add(pool.submit(() -> { try { perform(r, pool); } finally { slots.release(); } }));
        }
        for (Future<?> f : running) f.get();
        for (Row r : order) if (r.alone && r.result.isEmpty()) perform(r, pool);
        int failed = 0, passed = 0;
        for (Row r : rows) {
            if (r.result.equals("later")) tell(r);
            if (r.result.equals("FAIL")) failed++;
            if (r.result.equals("ok")) passed++;
        }
        System.out.printf("java client %s, %s headers: %d passed, %d failed, %d later, %.0f s%n", MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION),
            System.getProperty("rocketmq.serialize.type", "JSON"), passed, failed, rows.size() - passed - failed, (System.currentTimeMillis() - began) / 1000.0);
        Runtime.getRuntime().halt(failed == 0 && passed > 0 ? 0 : 1);
    }

    static synchronized void tell(Row r) { System.out.printf("%-5s %-22s %6.1f s  %s%n", r.result, r.name, r.millis / 1000.0, r.note); }

    /** The clients all cases share. */
    static void open() throws Exception {
        admin = new DefaultMQAdminExt(10_000);
        admin.setNamesrvAddr(namesrv);
        admin.setInstanceName("suite-admin");
        admin.start();
        var info = admin.examineBrokerClusterInfo();
        var data = info.getBrokerAddrTable().values().iterator().next();
        broker = data.getBrokerAddrs().get(0L);
        brokerName = data.getBrokerName();
        cluster = info.getClusterAddrTable().keySet().iterator().next();
        producer = new DefaultMQProducer("suite-producer-" + run);
        producer.setNamesrvAddr(namesrv);
        producer.setSendMsgTimeout(10_000);
        producer.start();
        SubscriptionGroupConfig g = new SubscriptionGroupConfig();
        g.setGroupName("suite-reader");
        admin.createAndUpdateSubscriptionGroupConfig(broker, g);
        reader = new DefaultMQPullConsumer("suite-reader");
        reader.setNamesrvAddr(namesrv);
        reader.setInstanceName("suite-reader");
        reader.start();
    }

    static void perform(Row r, ExecutorService pool) {
        Case c = new Case(r.name);
        long began = System.currentTimeMillis();
        // A client whose own heartbeat and first rebalance meet has its pulls refused (25, as RocketMQ does) until its next
        // heartbeat 30 s later; order locks of the dead hold for a minute with RocketMQ. All are patient, good cases never wait.
        c.patience = r.longer && rocketmq ? 90 : 45;
        int seconds = r.seconds + 3 * c.patience / 2;
        Thread[] thread = new Thread[1];
        Future<?> f = pool.submit(() -> { thread[0] = Thread.currentThread(); r.body.run(c); return null; });
        try {
            f.get(seconds, TimeUnit.SECONDS);
            r.result = "ok";
            r.note = c.note;
        } catch (TimeoutException e) {
            r.result = "FAIL";
            r.note = "not done after " + seconds + " s" + (c.waiting.isEmpty() ? "" : ", waits for " + c.waiting);
            for (StackTraceElement s : thread[0].getStackTrace())
                if (s.getFileName() != null && s.getClassName().indexOf('.') < 0) { r.note += " at " + s.getFileName() + ":" + s.getLineNumber(); break; }
            f.cancel(true);
        } catch (Throwable e) {
            Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
            r.result = "FAIL";
            r.note = (c.note.startsWith("a reply") ? c.note + "; " : "") + (cause instanceof Case.Wrong ? cause.getMessage() : cause.toString());
            for (StackTraceElement s : cause.getStackTrace())
                if (s.getClassName().indexOf('.') < 0 && !s.getClassName().equals("Case")) { r.note += " at " + s.getFileName() + ":" + s.getLineNumber(); break; }
            if (!(cause instanceof Case.Wrong)) {
                StringWriter w = new StringWriter();
                cause.printStackTrace(new PrintWriter(w));
                if (System.getenv("TRACE") != null) System.out.println(w);
            }
        }
        r.millis = System.currentTimeMillis() - began;
        r.note = r.note.replaceAll("\\s*For more information, please visit the url, [^ ]*", "").replace('\n', ' ').trim();
        tell(r);
        c.close(pool);
    }

    private Suite() {}
}
