import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.rocketmq.client.consumer.*;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.common.message.*;

/**
 * write NAMESRV: sends messages of many kinds and prints one line for each, "body-hash tags keys".
 * read NAMESRV: reads such lines from standard input and the topic from its first offset, and fails when one is missing or changed.
 * Messages with delay level 3 (10 s) are among them: the reader waits for those.
 */
public class StoreProbe {
    static final String TOPIC = "probe";

    public static void main(String[] args) throws Exception {
        try {
            if (args[0].equals("write")) write(args[1]); else read(args[1]);
        } catch (Throwable e) { // other threads would keep the process alive
            e.printStackTrace(System.out);
            System.exit(1);
        }
        System.exit(0);
    }

    static void write(String namesrv) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer("probe-producer");
        p.setNamesrvAddr(namesrv);
        p.start();
        Random random = new Random(42);
        for (int i = 0; i < 2000; i++) {
            byte[] body = new byte[i % 97 == 0 ? 6000 + i : 1 + random.nextInt(900)]; // some are compressed by the client
            for (int j = 0; j < body.length; j++) body[j] = (byte) (i + j % 13);
            Message m = new Message(TOPIC, i % 5 == 0 ? "" : i % 5 == 1 ? "青" : "tag" + i % 5, "key-" + i, body);
            send(p, m);
        }
        for (int i = 0; i < 20; i++) {
            Message m = new Message(TOPIC, "late", "late-" + i, ("late " + i).getBytes(StandardCharsets.UTF_8));
            m.setDelayTimeLevel(3);
            send(p, m);
        }
        p.shutdown();
    }

    static void send(DefaultMQProducer p, Message m) throws Exception {
        String line = line(m);
        SendResult r = p.send(m);
        if (r.getSendStatus() != SendStatus.SEND_OK) throw new IllegalStateException(r.toString());
        System.out.println(line);
    }

    static String line(Message m) {
        return Arrays.hashCode(m.getBody()) + " " + (m.getTags() == null ? "" : m.getTags()) + " " + m.getKeys();
    }

    static void read(String namesrv) throws Exception {
        Set<String> want = new HashSet<>();
        Scanner in = new Scanner(System.in, "UTF-8");
        while (in.hasNextLine()) want.add(in.nextLine());
        if (want.isEmpty()) throw new IllegalStateException("nothing was written");
        DefaultMQPullConsumer c = new DefaultMQPullConsumer("probe-reader");
        c.setNamesrvAddr(namesrv);
        c.start();
        Map<String, Integer> got = new HashMap<>();
        Map<MessageQueue, Long> next = new HashMap<>();
        for (MessageQueue q : c.fetchSubscribeMessageQueues(TOPIC)) next.put(q, c.minOffset(q));
        long end = System.currentTimeMillis() + 40_000;
        while (!got.keySet().containsAll(want)) {
            if (System.currentTimeMillis() > end) {
                want.removeAll(got.keySet());
                System.out.println("FAIL missing " + want.size() + ", for example " + want.iterator().next());
                System.exit(1);
            }
            for (MessageQueue q : next.keySet()) {
                PullResult r = c.pull(q, "*", next.get(q), 32);
                next.put(q, r.getNextBeginOffset());
                if (r.getPullStatus() == PullStatus.FOUND) for (MessageExt m : r.getMsgFoundList()) got.merge(line(m), 1, Integer::sum);
            }
            Thread.sleep(got.size() < 2000 ? 0 : 50);
        }
        for (String w : want) if (got.get(w) != 1) {
            System.out.println("FAIL " + w + " came " + got.get(w) + " times");
            System.exit(1);
        }
        c.shutdown();
    }
}
