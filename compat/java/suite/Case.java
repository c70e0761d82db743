import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.*;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** What a case works with: names of its own, clients that are shut down after it, conditions it waits for. */
final class Case {
    /** Something is not as it should be. */
    static final class Wrong extends RuntimeException { Wrong(String why) { super(why); } }

    final String name;
    volatile String note = "", waiting = "";
    int patience;
    private final AtomicInteger names = new AtomicInteger();
    private final Deque<Runnable> after = new ConcurrentLinkedDeque<>();

    Case(String name) { this.name = name; }

    // Names

    String unique(String what) { return name.replace('.', '-') + "-" + what + names.incrementAndGet() + "-" + Suite.run; }

    /** A new topic; the name server knows it when this returns. */
    String topic(int queues) throws Exception { return topic(unique("t"), queues, false); }

    String topic(String topic, int queues, boolean order) throws Exception {
        TopicConfig t = new TopicConfig(topic);
        t.setReadQueueNums(queues);
        t.setWriteQueueNums(queues);
        t.setOrder(order);
        Suite.admin.createAndUpdateTopicConfig(Suite.broker, t);
        await("the route of " + topic, 10, () -> {
            try { return !Suite.admin.examineTopicRouteInfo(topic).getQueueDatas().isEmpty(); } catch (Exception e) { return false; }
        });
        return topic;
    }

    /** A new consumer group with at most maxRetries deliveries again. */
    String group(int maxRetries) throws Exception {
        SubscriptionGroupConfig g = new SubscriptionGroupConfig();
        g.setGroupName(unique("g"));
        g.setRetryMaxTimes(maxRetries);
        Suite.admin.createAndUpdateSubscriptionGroupConfig(Suite.broker, g);
        return g.getGroupName();
    }

    String group() { return unique("g"); }

    // Conditions

    interface Condition { boolean holds() throws Exception; }

    void await(String what, double seconds, Condition done) throws Exception {
        long end = System.nanoTime() + (long) ((seconds + patience) * 1e9);
        waiting = what;
        while (!done.holds()) {
            if (System.nanoTime() > end) throw new Wrong("waited " + (seconds + patience) + " s for " + what);
            Thread.sleep(20);
        }
        waiting = "";
    }

    static void check(boolean ok, String why) { if (!ok) throw new Wrong(why); }

    static void same(Object want, Object got, String what) { if (!Objects.equals(want, got)) throw new Wrong(what + ": " + cut(got) + ", want " + cut(want)); }

    static String cut(Object o) { String s = String.valueOf(o); return s.length() > 300 ? s.substring(0, 300) + "..." : s; }

    /** The exception that a call must end with. */
    static <T extends Throwable> T refused(Class<T> as, Callable<?> call, String what) throws Exception {
        try {
            Object r = call.call();
            throw new Wrong(what + " was accepted: " + cut(r));
        } catch (Wrong e) {
            throw e;
        } catch (Throwable e) {
            if (as.isInstance(e)) return as.cast(e);
            throw new Wrong(what + ": " + e);
        }
    }

    // Messages

    static byte[] bytes(String s) { return s.getBytes(StandardCharsets.UTF_8); }
    static String text(Message m) { return m.getBody() == null ? null : new String(m.getBody(), StandardCharsets.UTF_8); }

    SendResult send(String topic, String tag, String key, String body) throws Exception { return sent(Suite.producer.send(new Message(topic, tag, key, bytes(body)))); }
    SendResult send(String topic, String body) throws Exception { return send(topic, "tag", "key", body); }
    SendResult send(MessageQueue q, String body) throws Exception { return sent(Suite.producer.send(new Message(q.getTopic(), "tag", "key", bytes(body)), q)); }

    static SendResult sent(SendResult r) { check(r.getSendStatus() == SendStatus.SEND_OK, "send: " + r); return r; }

    /** Queues of a topic in order of their numbers. */
    static List<MessageQueue> queues(String topic) throws Exception {
        List<MessageQueue> l = new ArrayList<>(Suite.reader.fetchSubscribeMessageQueues(topic));
        Collections.sort(l);
        return l;
    }

    /** All that lies in a topic now. */
    static List<MessageExt> read(String topic) throws Exception {
        List<MessageExt> all = new ArrayList<>();
        for (MessageQueue q : queues(topic)) {
            long at = Suite.reader.minOffset(q), end = Suite.reader.maxOffset(q);
            while (at < end) {
                PullResult r = Suite.reader.pull(q, "*", at, 32);
                if (r.getPullStatus() == PullStatus.FOUND) all.addAll(r.getMsgFoundList());
                if (r.getNextBeginOffset() <= at) break;
                at = r.getNextBeginOffset();
            }
        }
        return all;
    }

    /** Waits until a topic exists and holds n messages. */
    List<MessageExt> readAwait(String topic, int n, int seconds) throws Exception {
        List<MessageExt> got = new ArrayList<>();
        await(n + " messages in " + topic, seconds, () -> {
            got.clear();
            try { got.addAll(read(topic)); } catch (Exception e) { return false; }
            return got.size() >= n;
        });
        return got;
    }

    // Clients

    DefaultMQProducer producer() throws Exception {
        DefaultMQProducer p = new DefaultMQProducer(unique("p"));
        p.setNamesrvAddr(Suite.namesrv);
        p.setSendMsgTimeout(10_000);
        after(p::shutdown);
        return p;
    }

    DefaultMQPushConsumer consumer(String group, String topic, String tags) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(Suite.namesrv);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setConsumeThreadMin(4);
        c.setConsumeThreadMax(4);
        if (topic != null) c.subscribe(topic, tags);
        after(c::shutdown);
        return c;
    }

    /** Waits until a started consumer has n queues of a topic. */
    void assigned(DefaultMQPushConsumer k, String topic, int n) throws Exception {
        var table = k.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable();
        await(n + " queues of " + topic, 10, () -> table.keySet().stream().filter(q -> q.getTopic().equals(topic)).count() == n);
    }

    /** Whether a group has consumed all of a topic. */
    static boolean done(String group, String topic) {
        try { return Suite.admin.examineConsumeStats(group, topic).computeTotalDiff() == 0; } catch (Exception e) { return Suite.rocketmq && e.toString().contains("%RETRY%"); } // it may know no retry topic
    }

    DefaultLitePullConsumer lite(String group) {
        DefaultLitePullConsumer c = new DefaultLitePullConsumer(group);
        c.setNamesrvAddr(Suite.namesrv);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setPullThreadNums(2);
        after(c::shutdown);
        return c;
    }

    /** What a consumer got, in the order it came. */
    static final class Got implements MessageListenerConcurrently {
        final List<MessageExt> all = Collections.synchronizedList(new ArrayList<>());
        final Map<String, Long> at = new ConcurrentHashMap<>();

        @Override public ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> msgs, ConsumeConcurrentlyContext context) {
            for (MessageExt m : msgs) add(m);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        }

        void add(MessageExt m) { at.putIfAbsent(text(m), System.currentTimeMillis()); all.add(m); }
        int size() { return all.size(); }
        Set<String> bodies() { return at.keySet(); }
        List<String> list() { synchronized (all) { List<String> l = new ArrayList<>(); for (MessageExt m : all) l.add(text(m)); return l; } }
        MessageExt of(String body) { synchronized (all) { for (MessageExt m : all) if (text(m).equals(body)) return m; } return null; }
        int times(String body) { return Collections.frequency(list(), body); }
    }

    /** A push consumer that takes everything. */
    Got consume(String group, String topic, String tags) throws Exception {
        Got got = new Got();
        DefaultMQPushConsumer c = consumer(group, topic, tags);
        c.registerMessageListener(got);
        c.start();
        return got;
    }

    void exactly(Got got, Collection<String> want, double seconds) throws Exception {
        await(want.size() + " messages", seconds, () -> got.bodies().containsAll(want));
        List<String> l = got.list(), w = new ArrayList<>(want);
        Collections.sort(l);
        Collections.sort(w);
        same(w, l, "what came");
    }

    // Other processes

    /** A program of {@link Apart} in a process of its own. */
    Process apart(String... args) throws Exception {
        List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path")));
        for (String p : List.of("user.home", "rocketmq.serialize.type", "rocketmq.client.logUseSlf4j", "rocketmq.client.logLevel", "rocketmq.client.localOffsetStoreDir"))
            if (System.getProperty(p) != null) command.add("-D" + p + "=" + System.getProperty(p));
        command.add("Apart");
        command.add(Suite.namesrv);
        command.addAll(List.of(args));
        Process p = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        after(p::destroyForcibly);
        return p;
    }

    /** The lines a process prints, as they come. */
    static List<String> lines(Process p) {
        List<String> l = Collections.synchronizedList(new ArrayList<>());
        Thread t = new Thread(() -> {
            try (var r = p.inputReader()) { for (String s; (s = r.readLine()) != null; ) l.add(s); } catch (Exception e) { /* it was killed */ }
        });
        t.setDaemon(true);
        t.start();
        return l;
    }

    // The end

    void after(Runnable r) { after.push(r); }

    void close(ExecutorService pool) {
        Future<?> f = pool.submit(() -> { for (Runnable r; (r = after.poll()) != null; ) try { r.run(); } catch (Throwable e) { /* it may be shut down already */ } });
        try { f.get(10, TimeUnit.SECONDS); } catch (Exception e) { /* its threads do not keep the suite */ }
    }
}
