import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.*;

/**
 * The official Java client against a running server: normal and delayed messages, tags, a batch, a retry.
 * Arguments: name server address, topic. Ends with 0 and one line of figures when all is as it should be.
 */
public class Smoke {
    public static void main(String[] args) {
        try {
            run(args);
        } catch (Throwable e) { // other threads would keep the process alive
            e.printStackTrace(System.out);
            fail(e.toString());
        }
    }

    static void run(String[] args) throws Exception {
        String namesrv = args[0], topic = args[1];
        Map<String, List<MessageExt>> got = new ConcurrentHashMap<>();
        Map<String, Long> arrived = new ConcurrentHashMap<>();

        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("smoke-group-" + topic);
        consumer.setNamesrvAddr(namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "red || blue");
        consumer.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
            for (MessageExt m : msgs) {
                String body = new String(m.getBody(), StandardCharsets.UTF_8);
                got.computeIfAbsent(body, k -> new CopyOnWriteArrayList<>()).add(m);
                arrived.putIfAbsent(body, System.currentTimeMillis());
                if (body.equals("fails once") && m.getReconsumeTimes() == 0) {
                    context.setDelayLevelWhenNextConsume(1);
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });

        DefaultMQProducer producer = new DefaultMQProducer("smoke-producer");
        producer.setNamesrvAddr(namesrv);
        producer.start();
        List<String> want = new ArrayList<>();
        Map<String, Long> due = new HashMap<>();
        want.add("first");
        check(producer.send(new Message(topic, "red", "k0", bytes("first"))));
        consumer.start();
        for (int i = 0; i < 50; i++) {
            String tag = i % 3 == 0 ? "green" : i % 3 == 1 ? "red" : "blue", body = tag + " " + i;
            if (i % 3 != 0) want.add(body);
            check(producer.send(new Message(topic, tag, "k" + i, bytes(body))));
        }
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            want.add("batch " + i);
            batch.add(new Message(topic, "blue", bytes("batch " + i)));
        }
        check(producer.send(batch));
        StringBuilder large = new StringBuilder("large ");
        for (int i = 0; i < 20000; i++) large.append(i % 10);
        want.add(large.toString()); // the client compresses it
        check(producer.send(new Message(topic, "red", bytes(large.toString()))));
        want.add("fails once");
        check(producer.send(new Message(topic, "red", bytes("fails once"))));
        await("normal messages", 40, () -> got.keySet().containsAll(want));
        await("the retry", 40, () -> got.get("fails once").size() == 2);

        long[] delays = {1000, 5000, 10000};
        for (int i = 0; i < 15; i++) {
            int level = i % 3 + 1;
            String body = "level " + level + " number " + i;
            Message m = new Message(topic, "red", bytes(body));
            m.setDelayTimeLevel(level);
            due.put(body, System.currentTimeMillis() + delays[level - 1]);
            check(producer.send(m));
        }
        await("delayed messages", 30, () -> got.keySet().containsAll(due.keySet()));
        Thread.sleep(500);
        long worst = 0;
        for (Map.Entry<String, Long> e : due.entrySet()) {
            long late = arrived.get(e.getKey()) - e.getValue();
            if (late < -1) fail(e.getKey() + " came " + -late + " ms early");
            worst = Math.max(worst, late);
            if (got.get(e.getKey()).size() != 1) fail(e.getKey() + " came " + got.get(e.getKey()).size() + " times");
        }
        for (String w : want)
            if (got.get(w).size() != (w.equals("fails once") ? 2 : 1)) fail(w.substring(0, Math.min(30, w.length())) + " came " + got.get(w).size() + " times");
        for (String body : got.keySet())
            if (!want.contains(body) && !due.containsKey(body)) fail("not asked for: " + body);
        MessageExt retried = got.get("fails once").get(1);
        if (retried.getReconsumeTimes() != 1 || !retried.getTopic().equals(topic)) fail("retry: " + retried);

        String offsetId = ((MessageClientExt) got.get("red 1").get(0)).getOffsetMsgId();
        MessageExt viewed = producer.viewMessage(offsetId);
        if (!"red 1".equals(new String(viewed.getBody(), StandardCharsets.UTF_8))) fail("view by id: " + viewed);

        consumer.shutdown();
        producer.shutdown();
        System.out.println("java " + (want.size() + due.size()) + " messages, delayed at most " + worst + " ms late");
        System.exit(0);
    }

    static byte[] bytes(String s) { return s.getBytes(StandardCharsets.UTF_8); }

    static void check(SendResult r) {
        if (r.getSendStatus() != SendStatus.SEND_OK) fail("send: " + r);
    }

    static void await(String what, int seconds, BooleanSupplierX done) throws Exception {
        long end = System.currentTimeMillis() + seconds * 1000L;
        while (!done.get()) {
            if (System.currentTimeMillis() > end) fail(what + ": not there after " + seconds + " s");
            Thread.sleep(20);
        }
    }

    interface BooleanSupplierX { boolean get() throws Exception; }

    static void fail(String why) {
        System.out.println("FAIL " + why);
        System.exit(1);
    }
}
