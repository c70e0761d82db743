import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.rocketmq.client.consumer.*;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/** Push consumers: where they begin, how they share queues, what they keep. */
final class Consuming {
    static void cases(List<Suite.Row> rows) {
        rows.add(new Suite.Row("consume.broadcast", 30, Consuming::broadcast));
        rows.add(new Suite.Row("consume.from", 50, Consuming::from));
        rows.add(new Suite.Row("consume.continues", 50, Consuming::continues));
        rows.add(new Suite.Row("consume.rebalance", 60, Consuming::rebalance));
        rows.add(new Suite.Row("consume.suspend", 30, Consuming::suspend));
        rows.add(new Suite.Row("consume.subscriptions", 60, Consuming::subscriptions));
        rows.add(new Suite.Row("consume.batches", 30, Consuming::batches));
        rows.add(new Suite.Row("consume.groups", 30, Consuming::groups));
    }

    static DefaultMQPushConsumer started(Case c, String group, String topic, Case.Got got) throws Exception {
        DefaultMQPushConsumer k = c.consumer(group, topic, "*");
        k.registerMessageListener(got);
        k.start();
        return k;
    }

    /** Every consumer of a broadcast group gets everything; each keeps its own place. */
    static void broadcast(Case c) throws Exception {
        String topic = c.topic(4), group = c.group();
        List<String> want = new ArrayList<>(), second = new ArrayList<>();
        Case.Got[] got = {new Case.Got(), new Case.Got()};
        DefaultMQPushConsumer[] k = new DefaultMQPushConsumer[2];
        for (int i = 0; i < 2; i++) k[i] = broadcaster(c, group, topic, "b" + i, got[i]);
        for (int i = 0; i < 40; i++) { want.add("m" + i); c.send(topic, "m" + i); }
        for (Case.Got g : got) c.exactly(g, want, 15);
        k[1].shutdown();
        for (int i = 0; i < 10; i++) { second.add("n" + i); c.send(topic, "n" + i); }
        Case.Got again = new Case.Got();
        broadcaster(c, group, topic, "b1", again); // the same client comes back: it goes on where it was
        c.exactly(again, second, 15);
        c.await("the first consumer", 10, () -> got[0].size() == 50);
    }

    static DefaultMQPushConsumer broadcaster(Case c, String group, String topic, String instance, Case.Got got) throws Exception {
        DefaultMQPushConsumer k = c.consumer(group, topic, "*");
        k.setMessageModel(MessageModel.BROADCASTING);
        k.setInstanceName(instance + Suite.run);
        k.registerMessageListener(got);
        k.start();
        return k;
    }

    /** First, last, timestamp. */
    static void from(Case c) throws Exception {
        String topic = c.topic(2);
        for (int i = 0; i < 10; i++) c.send(topic, "old" + i);
        Thread.sleep(2500);
        String between = UtilAll.timeMillisToHumanString3(System.currentTimeMillis() - 1000); // whole seconds
        for (int i = 0; i < 10; i++) c.send(topic, "mid" + i);
        Map<ConsumeFromWhere, Case.Got> got = new EnumMap<>(ConsumeFromWhere.class);
        for (ConsumeFromWhere w : List.of(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, ConsumeFromWhere.CONSUME_FROM_TIMESTAMP)) {
            DefaultMQPushConsumer k = c.consumer(c.group(), topic, "*");
            k.setConsumeFromWhere(w);
            k.setConsumeTimestamp(between);
            got.put(w, new Case.Got());
            k.registerMessageListener(got.get(w));
            k.start();
            c.assigned(k, topic, 2);
        }
        List<String> all = new ArrayList<>(), mid = new ArrayList<>(), fresh = new ArrayList<>();
        for (int i = 0; i < 10; i++) { c.send(topic, "new" + i); all.addAll(List.of("old" + i, "mid" + i, "new" + i)); mid.addAll(List.of("mid" + i, "new" + i)); fresh.add("new" + i); }
        c.exactly(got.get(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET), all, 20);
        // RocketMQ sends a new group to 0 while the queue's first message is in memory, whatever it asks for
        c.exactly(got.get(ConsumeFromWhere.CONSUME_FROM_TIMESTAMP), Suite.rocketmq ? all : mid, 20);
        c.exactly(got.get(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET), Suite.rocketmq ? all : fresh, 20);
    }

    /** A group that comes back goes on where it was. */
    static void continues(Case c) throws Exception {
        String topic = c.topic(4), group = c.group();
        List<String> want = new ArrayList<>();
        for (int round = 0; round < 3; round++) {
            List<String> now = new ArrayList<>();
            for (int i = 0; i < 20; i++) { now.add(round + "-" + i); c.send(topic, round + "-" + i); }
            Case.Got got = new Case.Got();
            DefaultMQPushConsumer k = started(c, group, topic, got);
            c.exactly(got, now, 15);
            k.shutdown();
            want.addAll(now);
        }
        long committed = 0;
        for (MessageQueue q : Case.queues(topic)) {
            var stats = Suite.admin.examineConsumeStats(group, topic).getOffsetTable().get(q);
            if (stats != null) committed += stats.getConsumerOffset();
        }
        Case.same(60L, committed, "committed in all");
    }

    /** Three instances come and go while messages flow; nothing is lost. */
    static void rebalance(Case c) throws Exception {
        String topic = c.topic(8), group = c.group();
        Map<String, AtomicInteger> came = new ConcurrentHashMap<>();
        AtomicBoolean stop = new AtomicBoolean();
        List<String> want = Collections.synchronizedList(new ArrayList<>());
        MessageListenerConcurrently listener = (msgs, x) -> {
            for (MessageExt m : msgs) came.computeIfAbsent(Case.text(m), b -> new AtomicInteger()).incrementAndGet();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
        CompletableFuture<Void> flow = new CompletableFuture<>();
        Thread sender = new Thread(() -> {
            try {
                for (int i = 0; !stop.get(); i++) { c.send(topic, "k", "k" + i, "r" + i); want.add("r" + i); Thread.sleep(8); }
                flow.complete(null);
            } catch (Throwable e) { flow.completeExceptionally(e); }
        });
        sender.setDaemon(true);
        sender.start();
        Deque<DefaultMQPushConsumer> running = new ArrayDeque<>();
        int[] plan = {1, 1, 1, -1, 1, -1, -1, 1, 1, -1, 1, -1}; // never all gone
        for (int step : plan) {
            if (step > 0) {
                DefaultMQPushConsumer k = c.consumer(group, topic, "*");
                k.registerMessageListener(listener);
                k.start();
                running.add(k);
            } else running.poll().shutdown();
            Thread.sleep(1000);
        }
        stop.set(true);
        flow.get(10, TimeUnit.SECONDS);
        c.await("all messages (" + want.size() + ")", 35, () -> came.size() >= want.size());
        int twice = 0;
        for (String w : want) { Case.check(came.containsKey(w), w + " was lost"); if (came.get(w).get() > 1) twice++; }
        c.note = want.size() + " messages, " + twice + " came twice";
    }

    static void suspend(Case c) throws Exception {
        String topic = c.topic(2);
        Case.Got got = new Case.Got();
        DefaultMQPushConsumer k = started(c, c.group(), topic, got);
        c.send(topic, "before");
        c.await("the first message", 10, () -> got.size() == 1);
        k.suspend();
        Thread.sleep(1500); // parked pulls may still come back with something
        int seen = got.size();
        c.send(topic, "x0");
        c.await("what the parked pulls carry", 3, () -> true);
        Thread.sleep(1500);
        for (int i = 1; i < 10; i++) c.send(topic, "x" + i);
        Thread.sleep(1500);
        Case.check(got.size() <= seen + 2, "came while suspended: " + got.list()); // what a parked pull carried is consumed
        k.resume();
        c.await("the rest", 15, () -> got.size() == 11);
    }

    /** Subscriptions change while the consumer runs. */
    static void subscriptions(Case c) throws Exception {
        String one = c.topic(2), two = c.topic(2);
        Case.Got got = new Case.Got();
        DefaultMQPushConsumer k = c.consumer(c.group(), one, "a || b");
        k.setPollNameServerInterval(1000); // it looks for the routes of new topics
        k.registerMessageListener(got);
        k.start();
        c.send(one, "a", "k", "one a");
        c.send(one, "c", "k", "one c");
        c.send(two, "a", "k", "two a");
        c.await("the first topic", 10, () -> got.size() == 1);
        k.subscribe(two, "*"); // sends a heartbeat; queues are shared out at the next rebalance, 20 s at most
        c.await("the second topic", 30, () -> got.bodies().contains("two a"));
        k.subscribe(one, "c || d");
        c.send(one, "a", "k", "one a again"); // a parked pull with the old tags may carry it, the listener must not see it
        c.await("new tags", 30, () -> {
            c.send(one, "d", "k", "one d"); // a parked pull passes it by, later ones do not
            c.send(one, "c", "k", "one c again");
            Thread.sleep(300);
            return got.bodies().containsAll(List.of("one d", "one c again"));
        });
        Thread.sleep(500);
        Case.same(Set.of("one a", "two a", "one d", "one c again"), got.bodies(), "what came");
    }

    static void batches(Case c) throws Exception {
        String topic = c.topic(1);
        for (int i = 0; i < 100; i++) c.send(topic, "m" + i);
        Case.Got got = new Case.Got();
        AtomicInteger largest = new AtomicInteger();
        DefaultMQPushConsumer k = c.consumer(c.group(), topic, "*");
        k.setPullBatchSize(20);
        k.setConsumeMessageBatchMaxSize(10);
        k.setPullThresholdForQueue(15); // flow control of the client
        k.registerMessageListener((MessageListenerConcurrently) (msgs, x) -> {
            largest.accumulateAndGet(msgs.size(), Math::max);
            for (MessageExt m : msgs) got.add(m);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        k.start();
        c.await("100 messages", 15, () -> got.size() == 100);
        Case.check(largest.get() > 1 && largest.get() <= 10, "the largest batch had " + largest.get());
    }

    /** Groups do not disturb each other; one shares its queues among its consumers. */
    static void groups(Case c) throws Exception {
        String topic = c.topic(4), shared = c.group();
        Case.Got single = c.consume(c.group(), topic, "*"), a = new Case.Got(), b = new Case.Got();
        DefaultMQPushConsumer one = started(c, shared, topic, a), two = started(c, shared, topic, b);
        c.assigned(one, topic, 2);
        c.assigned(two, topic, 2);
        List<String> want = new ArrayList<>();
        for (int i = 0; i < 40; i++) { want.add("m" + i); c.send(topic, "m" + i); }
        c.exactly(single, want, 10);
        c.await("the group of two", 20, () -> a.size() + b.size() >= 40);
        Case.same(40, a.size() + b.size(), "messages for the group of two");
        Case.check(a.size() > 0 && b.size() > 0, "shared " + a.size() + " to " + b.size());
    }

    private Consuming() {}
}
