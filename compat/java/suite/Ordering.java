import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.rocketmq.client.consumer.*;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.common.message.*;

/** Consumers that take the messages of a queue one after the other. */
final class Ordering {
    static void cases(List<Suite.Row> rows) {
        rows.add(new Suite.Row("order.killed", 50, Ordering::killed).longerThere()); // its order locks outlive a client by 60 s
        rows.add(new Suite.Row("order.handover", 60, Ordering::handover));
        rows.add(new Suite.Row("order.retries", 30, Ordering::retries));
        rows.add(new Suite.Row("order.givesup", 40, Ordering::givesUp));
        rows.add(new Suite.Row("order.topic", 30, Ordering::orderedTopic));
    }

    static final int KEYS = 12;

    /** Sends each key's numbers to the key's queue; stops after n of each. */
    static Future<?> flow(Case c, String topic, int n, long pause) {
        FutureTask<?> t = new FutureTask<>(() -> {
            for (int i = 0; i < n; i++)
                for (int k = 0; k < KEYS; k++) {
                    Case.sent(Suite.producer.send(new Message(topic, "t", "key" + k, Case.bytes("key" + k + " " + i)), (l, m, arg) -> l.get((Integer) arg % l.size()), k));
                    if (pause > 0) Thread.sleep(pause);
                }
            return null;
        });
        Thread th = new Thread(t);
        th.setDaemon(true);
        th.start();
        return t;
    }

    /** Lines "time key number" of all consumers: every number of a key is seen first after the one before it. */
    static int inOrder(List<String> lines, int n) {
        List<String> sorted = new ArrayList<>(lines);
        sorted.sort(Comparator.comparingLong(s -> Long.parseLong(s.substring(0, s.indexOf(' '))))); // stable: lines of one consumer stay in order
        Map<String, Integer> next = new HashMap<>();
        int again = 0;
        for (String s : sorted) {
            String[] f = s.split(" ");
            int want = next.getOrDefault(f[1], 0), got = Integer.parseInt(f[2]);
            Case.check(got <= want, f[1] + ": " + got + " came before " + want);
            if (got == want) next.put(f[1], want + 1); else again++;
        }
        for (int k = 0; k < KEYS; k++) Case.same(n, next.getOrDefault("key" + k, 0), "numbers of key" + k);
        return again;
    }

    static boolean complete(List<String> lines, int n) {
        Set<String> seen = new HashSet<>();
        synchronized (lines) { for (String s : lines) seen.add(s.substring(s.indexOf(' ') + 1)); }
        return seen.size() >= n * KEYS;
    }

    static DefaultMQPushConsumer orderly(Case c, String group, String topic, List<String> lines) throws Exception {
        DefaultMQPushConsumer k = c.consumer(group, topic, "*");
        k.registerMessageListener((MessageListenerOrderly) (msgs, x) -> {
            for (MessageExt m : msgs) lines.add(System.currentTimeMillis() + " " + Case.text(m));
            return ConsumeOrderlyStatus.SUCCESS;
        });
        k.start();
        return k;
    }

    /** Two consumers in two processes; one is killed while messages flow. */
    static void killed(Case c) throws Exception {
        String topic = c.topic(6), group = c.group();
        int n = 60;
        List<String> here = Collections.synchronizedList(new ArrayList<>());
        Process other = c.apart("orderly", group, topic);
        List<String> there = Case.lines(other);
        orderly(c, group, topic, here);
        c.await("both consumers at the broker", 20, () -> {
            try { return Suite.admin.examineConsumerConnectionInfo(group).getConnectionSet().size() == 2; } catch (Exception e) { return false; }
        });
        Future<?> flow = flow(c, topic, n, 12);
        c.await("messages at the other consumer", 35, () -> there.size() >= 60);
        other.destroyForcibly();
        long at = System.currentTimeMillis();
        int had = here.size();
        flow.get(30, TimeUnit.SECONDS);
        List<String> all = Collections.synchronizedList(new ArrayList<>());
        c.await("the rest", 100, () -> { all.clear(); synchronized (here) { all.addAll(here); } synchronized (there) { all.addAll(there); } return complete(all, n); });
        long took = 0;
        synchronized (here) { if (!here.isEmpty()) took = Long.parseLong(here.get(here.size() - 1).split(" ")[0]) - at; }
        int again = inOrder(all, n);
        Case.check(had > 0, "the consumer here had nothing before the other was killed");
        c.note = again + " came again, done " + took + " ms after the kill";
    }

    /** Consumers come and go in good order: nothing comes twice, order is kept. */
    static void handover(Case c) throws Exception {
        String topic = c.topic(6), group = c.group();
        int n = 50;
        List<String> lines = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer a = orderly(c, group, topic, lines);
        Future<?> flow = flow(c, topic, n, 10);
        Thread.sleep(1500);
        DefaultMQPushConsumer b = orderly(c, group, topic, lines);
        Thread.sleep(2000);
        a.shutdown();
        Thread.sleep(500);
        orderly(c, group, topic, lines);
        flow.get(30, TimeUnit.SECONDS);
        c.await("all", 45, () -> complete(lines, n));
        List<String> all;
        synchronized (lines) { all = new ArrayList<>(lines); }
        c.note = inOrder(all, n) + " came again";
    }

    /** SUSPEND_CURRENT_QUEUE_A_MOMENT: the same message comes again before the next. */
    static void retries(Case c) throws Exception {
        String topic = c.topic(1);
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer k = c.consumer(c.group(), topic, "*");
        k.setSuspendCurrentQueueTimeMillis(200);
        k.registerMessageListener((MessageListenerOrderly) (msgs, x) -> {
            MessageExt m = msgs.get(0);
            seen.add(Case.text(m) + "/" + m.getReconsumeTimes());
            return Case.text(m).equals("m2") && m.getReconsumeTimes() < 3 ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
        });
        for (int i = 0; i < 5; i++) c.send(topic, "m" + i);
        k.start();
        c.await("all", 20, () -> seen.contains("m4/0"));
        Case.same(List.of("m0/0", "m1/0", "m2/0", "m2/1", "m2/2", "m2/3", "m3/0", "m4/0"), new ArrayList<>(seen), "deliveries");
    }

    /** After maxReconsumeTimes the message is a dead letter and the queue goes on. */
    static void givesUp(Case c) throws Exception {
        String topic = c.topic(1), group = c.group();
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer k = c.consumer(group, topic, "*");
        k.setSuspendCurrentQueueTimeMillis(200);
        k.setMaxReconsumeTimes(2);
        k.registerMessageListener((MessageListenerOrderly) (msgs, x) -> {
            MessageExt m = msgs.get(0);
            seen.add(Case.text(m) + "/" + m.getReconsumeTimes());
            return Case.text(m).equals("bad") ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
        });
        for (String b : List.of("good", "bad", "next")) c.send(topic, "tag", "key " + b, b);
        k.start();
        c.await("the message after the bad one", 30, () -> seen.contains("next/0"));
        Case.same(List.of("good/0", "bad/0", "bad/1", "bad/2", "next/0"), new ArrayList<>(seen), "deliveries");
        MessageExt dead = c.readAwait("%DLQ%" + group, 1, 10).get(0);
        Case.same("bad", Case.text(dead), "dead letter");
        Case.same("key bad", dead.getKeys(), "its key");
    }

    /** A topic configured as ordered: the name server's order configuration reaches producers. */
    static void orderedTopic(Case c) throws Exception {
        String topic = c.topic(c.unique("t"), 4, true);
        Properties on = new Properties(); // a setting of the name server, off unless asked for
        on.put("orderMessageEnable", "true");
        Suite.admin.updateNameServerConfig(on, null);
        Suite.admin.createOrUpdateOrderConf(topic, Suite.brokerName + ":3", true);
        c.await("the order configuration in the route", 10, () -> (Suite.brokerName + ":3").equals(Suite.admin.examineTopicRouteInfo(topic).getOrderTopicConf()));
        var p = c.producer();
        p.start();
        Set<Integer> used = new HashSet<>();
        for (int i = 0; i < 12; i++) used.add(Case.sent(p.send(new Message(topic, Case.bytes("o" + i)))).getMessageQueue().getQueueId());
        Case.same(Set.of(0, 1, 2), used, "queues used");
        Case.check(Suite.admin.examineTopicConfig(Suite.broker, topic).isOrder(), "the topic is not ordered");
    }

    private Ordering() {}
}
