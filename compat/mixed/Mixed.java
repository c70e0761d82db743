import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.*;

/**
 * A producer and a consumer of one topic that two brokers have, of which somebody stops and starts one or the
 * other meanwhile. Arguments: name servers, topic. What is to be seen is asked for on the standard input, a line
 * each, and answered by a line that begins with "ok" or "FAIL":
 *
 *   from A B ...    from now on messages are acknowledged by each of these brokers, and arrive from each of them
 *   end             sending ends; everything acknowledged has arrived
 */
public class Mixed {
    static final Map<String, String> acked = new ConcurrentHashMap<>(); // body to broker
    static final Map<String, AtomicInteger> arrived = new ConcurrentHashMap<>();
    static final Map<String, AtomicLong> sentTo = new ConcurrentHashMap<>(), gotFrom = new ConcurrentHashMap<>();
    static final AtomicLong refused = new AtomicLong();
    static final AtomicBoolean stop = new AtomicBoolean();

    public static void main(String[] args) {
        try {
            run(args[0], args[1]);
        } catch (Throwable e) { // other threads would keep the process alive
            e.printStackTrace(System.out);
            fail(e.toString());
        }
    }

    static void run(String namesrv, String topic) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("g-" + topic);
        consumer.setNamesrvAddr(namesrv);
        consumer.setPollNameServerInterval(2000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
            String broker = context.getMessageQueue().getBrokerName();
            for (MessageExt m : msgs) {
                arrived.computeIfAbsent(new String(m.getBody(), StandardCharsets.UTF_8), k -> new AtomicInteger()).incrementAndGet();
                gotFrom.computeIfAbsent(broker, k -> new AtomicLong()).incrementAndGet();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        DefaultMQProducer producer = new DefaultMQProducer("p-" + topic);
        producer.setNamesrvAddr(namesrv);
        producer.setPollNameServerInterval(2000);
        producer.setSendMsgTimeout(3000);
        producer.setRetryTimesWhenSendFailed(3);
        producer.start();
        consumer.start();
        Thread sender = new Thread(() -> send(producer, topic));
        sender.start();
        System.out.println("ready");

        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] word = line.trim().split(" +");
            if (word[0].equals("from")) {
                from(Arrays.asList(word).subList(1, word.length));
            } else if (word[0].equals("end")) {
                stop.set(true);
                sender.join();
                await("everything acknowledged", 90, () -> arrived.keySet().containsAll(acked.keySet()), () -> {
                    Set<String> missing = new TreeSet<>(acked.keySet());
                    missing.removeAll(arrived.keySet());
                    return missing.size() + " did not arrive, such as " + missing.iterator().next() + " of " + acked.get(missing.iterator().next());
                });
                long twice = arrived.values().stream().filter(n -> n.get() > 1).count();
                System.out.println("ok " + acked.size() + " acknowledged and arrived, by broker " + sentTo + ", " + refused + " sends failed, " + twice + " came twice");
                consumer.shutdown();
                producer.shutdown();
                System.exit(0);
            } else {
                fail("not understood: " + line);
            }
        }
    }

    static void send(DefaultMQProducer producer, String topic) {
        for (int i = 0; !stop.get(); i++) {
            String body = "m" + i;
            try {
                SendResult r = producer.send(new Message(topic, "t", "k" + i, body.getBytes(StandardCharsets.UTF_8)));
                if (r.getSendStatus() == SendStatus.SEND_OK) {
                    acked.put(body, r.getMessageQueue().getBrokerName());
                    sentTo.computeIfAbsent(r.getMessageQueue().getBrokerName(), k -> new AtomicLong()).incrementAndGet();
                }
                Thread.sleep(5);
            } catch (Exception e) {
                refused.incrementAndGet();
                try { Thread.sleep(50); } catch (InterruptedException ignored) { return; }
            }
        }
    }

    static void from(List<String> brokers) throws Exception {
        Map<String, Long> sent = new HashMap<>(), got = new HashMap<>();
        for (String b : brokers) {
            sent.put(b, count(sentTo, b));
            got.put(b, count(gotFrom, b));
        }
        long began = System.currentTimeMillis();
        await("messages to and from " + brokers, 90, () -> {
            for (String b : brokers)
                if (count(sentTo, b) < sent.get(b) + 20 || count(gotFrom, b) < got.get(b) + 20) return false;
            return true;
        }, () -> "acknowledged " + sentTo + ", arrived " + gotFrom);
        System.out.println("ok from " + String.join(" and ", brokers) + " after " + (System.currentTimeMillis() - began) + " ms");
    }

    static long count(Map<String, AtomicLong> m, String key) {
        AtomicLong n = m.get(key);
        return n == null ? 0 : n.get();
    }

    interface Condition { boolean holds() throws Exception; }
    interface Text { String get(); }

    static void await(String what, int seconds, Condition c, Text why) throws Exception {
        long end = System.currentTimeMillis() + seconds * 1000L;
        while (!c.holds()) {
            if (System.currentTimeMillis() > end) fail(what + ": not after " + seconds + " s: " + why.get());
            Thread.sleep(20);
        }
    }

    static void fail(String why) {
        System.out.println("FAIL " + why);
        System.exit(1);
    }
}
