import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.*;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.*;

/**
 * Official producers and consumers that stay online and do what they are told, one line at a time. Runs alone with the
 * client 4.9.8, and inside Driver with that of 5.5.0. A line is a verb and its words, separated by tabs; the answer is
 * one line of text.
 *
 * producer NAME [trace]                          start a producer of group NAME
 * send NAME TOPIC QUEUE TAGS KEYS BODY [K=V...]  "unique-id offset-id queue offset"; "-" is none, QUEUE may be "-"
 * batch NAME TOPIC QUEUE TAGS COUNT              one batch of COUNT messages
 * txproducer NAME                                start a transactional producer
 * tx NAME TOPIC TAGS KEYS BODY ANSWER            ANSWER: commit, rollback, unknown (also when it is checked)
 * consumer NAME TOPIC EXPR [orderly] [broadcast] [trace] [max=N] [from=last]   start a push consumer of group NAME
 * await NAME COUNT                               until consumer NAME took COUNT messages
 * wait MILLIS                                    let time pass
 * taken NAME                                     how many it took
 * pull NAME TOPIC COUNT                          start a lite pull consumer and take COUNT messages
 * stop NAME                                      shut one down
 */
public class Clients {
    private final String namesrv;
    private final Map<String, DefaultMQProducer> producers = new ConcurrentHashMap<>();
    private final Map<String, Runnable> stops = new ConcurrentHashMap<>();
    private final Map<String, AtomicInteger> taken = new ConcurrentHashMap<>();

    Clients(String namesrv) {
        this.namesrv = namesrv;
    }

    public static void main(String[] args) throws Exception {
        Clients clients = new Clients(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        System.setOut(System.err);
        for (String line; (line = in.readLine()) != null;) {
            String answer;
            try {
                answer = "ok " + clients.handle(line.split("\t", -1));
            } catch (Throwable e) {
                answer = "error " + e;
            }
            out.println(answer.replace('\n', ' '));
        }
        clients.stopAll();
        System.exit(0);
    }

    void stopAll() {
        for (Runnable stop : stops.values()) stop.run();
    }

    String handle(String[] w) throws Exception {
        switch (w[0]) {
            case "producer": {
                DefaultMQProducer p = new DefaultMQProducer(w[1]);
                if (has(w, "trace")) p.setEnableTrace(true); // in 5.x only
                start(w[1], p);
                return w[1];
            }
            case "txproducer": {
                TransactionMQProducer p = new TransactionMQProducer(w[1]);
                p.setTransactionListener(new TransactionListener() {
                    public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
                        return state((String) arg);
                    }

                    public LocalTransactionState checkLocalTransaction(MessageExt m) {
                        return state(m.getUserProperty("answer"));
                    }
                });
                start(w[1], p);
                return w[1];
            }
            case "send": return send(w);
            case "batch": {
                List<Message> batch = new ArrayList<>();
                for (int i = 0; i < Integer.parseInt(w[5]); i++) batch.add(new Message(w[2], w[4], "b" + i, bytes("batch " + i)));
                return told(producers.get(w[1]).send(batch, queue(producers.get(w[1]), w[2], w[3])));
            }
            case "tx": {
                Message m = new Message(w[2], w[3], w[4], bytes(w[5]));
                m.putUserProperty("answer", w[6]);
                return told(((TransactionMQProducer) producers.get(w[1])).sendMessageInTransaction(m, w[6]));
            }
            case "consumer": return consumer(w);
            case "await": {
                long end = System.currentTimeMillis() + 60000;
                while (taken.get(w[1]).get() < Integer.parseInt(w[2])) {
                    if (System.currentTimeMillis() > end) throw new Exception(w[1] + " took " + taken.get(w[1]) + " messages in 60 s, want " + w[2]);
                    Thread.sleep(20);
                }
                return w[2];
            }
            case "wait": {
                Thread.sleep(Long.parseLong(w[1]));
                return w[1];
            }
            case "taken": return taken.get(w[1]).toString();
            case "pull": {
                DefaultLitePullConsumer c = new DefaultLitePullConsumer(w[1]);
                configure(c, w[1]);
                c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
                c.subscribe(w[2], "*");
                c.start();
                stops.put(w[1], c::shutdown);
                int n = 0;
                for (int i = 0; i < 40 && n < Integer.parseInt(w[3]); i++) n += c.poll(500).size();
                c.commitSync();
                return Integer.toString(n);
            }
            case "stop": {
                stops.remove(w[1]).run();
                return w[1];
            }
            default: throw new IllegalArgumentException("no verb " + w[0]);
        }
    }

    private void configure(org.apache.rocketmq.client.ClientConfig c, String name) {
        c.setNamesrvAddr(namesrv);
        c.setClientIP("127.0.0.1");
        c.setInstanceName(name);
        c.setPersistConsumerOffsetInterval(1000);
        c.setPollNameServerInterval(2000);
    }

    private void start(String name, DefaultMQProducer p) throws Exception {
        configure(p, name);
        p.setSendMsgTimeout(30000);
        p.start();
        producers.put(name, p);
        stops.put(name, p::shutdown);
    }

    private String send(String[] w) throws Exception {
        Message m = new Message(w[2], none(w[4]), none(w[5]), bytes(w[6]));
        for (int i = 7; i < w.length; i++) {
            String[] kv = w[i].split("=", 2);
            if (kv[0].equals("DELAY")) m.setDelayTimeLevel(Integer.parseInt(kv[1]));
            else m.putUserProperty(kv[0], kv[1]);
        }
        DefaultMQProducer p = producers.get(w[1]);
        if (w[3].equals("-")) return told(p.send(m));
        return told(p.send(m, queue(p, w[2], w[3])));
    }

    private static MessageQueue queue(DefaultMQProducer p, String topic, String id) throws Exception {
        for (MessageQueue q : p.fetchPublishMessageQueues(topic)) if (q.getQueueId() == Integer.parseInt(id)) return q;
        throw new IllegalArgumentException("topic " + topic + " has no queue " + id);
    }

    private static String told(SendResult r) {
        return r.getMsgId() + " " + r.getOffsetMsgId() + " " + r.getMessageQueue().getQueueId() + " " + r.getQueueOffset();
    }

    private String consumer(String[] w) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(w[1]);
        if (has(w, "trace")) c.setEnableTrace(true); // in 5.x only
        configure(c, w[1]);
        c.setConsumeFromWhere(has(w, "from=last") ? ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET : ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        if (has(w, "broadcast")) broadcast(c);
        for (String word : w) if (word.startsWith("max=")) c.setMaxReconsumeTimes(Integer.parseInt(word.substring(4)));
        c.subscribe(w[2], w[3]);
        AtomicInteger count = taken.computeIfAbsent(w[1], k -> new AtomicInteger());
        if (has(w, "orderly")) {
            c.registerMessageListener((MessageListenerOrderly) (msgs, context) -> {
                count.addAndGet(msgs.size());
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            c.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
                count.addAndGet(msgs.size());
                for (MessageExt m : msgs) {
                    if (new String(m.getBody(), StandardCharsets.UTF_8).startsWith("fails")) {
                        context.setDelayLevelWhenNextConsume(1);
                        return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                    }
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        c.start();
        stops.put(w[1], c::shutdown);
        return w[1];
    }

    /** MessageModel moved to another package between 4.9 and 5. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void broadcast(DefaultMQPushConsumer c) throws Exception {
        for (java.lang.reflect.Method m : DefaultMQPushConsumer.class.getMethods()) {
            if (m.getName().equals("setMessageModel")) m.invoke(c, Enum.valueOf((Class) m.getParameterTypes()[0], "BROADCASTING"));
        }
    }

    private static LocalTransactionState state(String answer) {
        switch (answer) {
            case "commit": return LocalTransactionState.COMMIT_MESSAGE;
            case "rollback": return LocalTransactionState.ROLLBACK_MESSAGE;
            default: return LocalTransactionState.UNKNOW;
        }
    }

    private static boolean has(String[] w, String word) {
        return Arrays.asList(w).contains(word);
    }

    private static String none(String s) {
        return s.equals("-") ? null : s;
    }

    private static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }
}
