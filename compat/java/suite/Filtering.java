import java.util.*;
import org.apache.rocketmq.client.consumer.*;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.client.exception.*;
import org.apache.rocketmq.common.message.*;

/** SQL92 filters. */
final class Filtering {
    static void cases(List<Suite.Row> rows) {
        rows.add(new Suite.Row("sql.expressions", 30, Filtering::expressions));
        rows.add(new Suite.Row("sql.push", 40, Filtering::push));
        rows.add(new Suite.Row("sql.bad", 20, Filtering::bad));
        rows.add(new Suite.Row("sql.lite", 30, Filtering::lite));
    }

    static void fill(Case c, String topic) throws Exception {
        for (int i = 0; i < 20; i++) {
            Message m = new Message(topic, i % 2 == 0 ? "even" : "odd", "k" + i, Case.bytes("" + i));
            m.putUserProperty("n", "" + i);
            m.putUserProperty("color", new String[]{"red", "green", "blue"}[i % 3]);
            if (i % 5 == 0) m.putUserProperty("five", "true");
            Case.sent(Suite.producer.send(m));
        }
    }

    static DefaultMQPushConsumer consumer(Case c, String group, String topic, String sql) throws Exception {
        DefaultMQPushConsumer k = c.consumer(group, null, null);
        k.subscribe(topic, MessageSelector.bySql(sql));
        return k;
    }

    /** One consumer per expression over the same messages. */
    static void expressions(Case c) throws Exception {
        String topic = c.topic(2);
        fill(c, topic);
        Map<String, List<Integer>> want = new LinkedHashMap<>();
        want.put("n > 15", List.of(16, 17, 18, 19));
        want.put("n >= 3 AND n < 6 OR n = 10", List.of(3, 4, 5, 10));
        want.put("color IN ('red', 'blue') AND n <= 5", List.of(0, 2, 3, 5));
        want.put("color NOT IN ('red', 'blue') AND n <= 5", List.of(1, 4));
        want.put("n BETWEEN 7 AND 9", List.of(7, 8, 9));
        want.put("five IS NOT NULL", List.of(0, 5, 10, 15));
        want.put("five IS NULL AND n < 3", List.of(1, 2));
        want.put("five = TRUE AND NOT (n = 5)", List.of(0, 10, 15));
        want.put("TAGS = 'odd' AND color = 'green'", List.of(1, 7, 13, 19));
        want.put("color <> 'red' AND n NOT BETWEEN 2 AND 18", List.of(1, 19));
        want.put("nothing = 'x'", List.of());
        Map<String, Case.Got> got = new LinkedHashMap<>();
        for (String sql : want.keySet()) {
            DefaultMQPushConsumer k = consumer(c, c.group(), topic, sql);
            got.put(sql, new Case.Got());
            k.registerMessageListener(got.get(sql));
            k.start();
        }
        for (var e : want.entrySet()) {
            List<String> bodies = new ArrayList<>();
            for (int i : e.getValue()) bodies.add("" + i);
            try { c.exactly(got.get(e.getKey()), bodies, 15); } catch (Case.Wrong w) { throw new Case.Wrong(e.getKey() + ": " + w.getMessage()); }
        }
        Thread.sleep(300);
        for (var e : want.entrySet()) Case.same(e.getValue().size(), got.get(e.getKey()).size(), "messages for " + e.getKey());
        c.note = want.size() + " expressions";
    }

    /** Parked pulls, batches, retries under a filter. */
    static void push(Case c) throws Exception {
        String topic = c.topic(2), group = c.group();
        Case.Got got = new Case.Got();
        DefaultMQPushConsumer k = consumer(c, group, topic, "a > 5");
        k.registerMessageListener((MessageListenerConcurrently) (msgs, x) -> {
            for (MessageExt m : msgs) got.add(m);
            x.setDelayLevelWhenNextConsume(1);
            return Case.text(msgs.get(0)).equals("7") && msgs.get(0).getReconsumeTimes() == 0 ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        k.start();
        Thread.sleep(1000); // its pulls are parked
        for (int i = 0; i < 10; i++) {
            Message m = new Message(topic, Case.bytes("" + i));
            m.putUserProperty("a", "" + i);
            Case.sent(Suite.producer.send(m));
        }
        List<Message> batch = new ArrayList<>();
        for (int i = 20; i < 24; i++) {
            Message m = new Message(topic, Case.bytes("" + i));
            m.putUserProperty("a", "" + (i % 2 == 0 ? 1 : i));
            batch.add(m);
        }
        Case.sent(Suite.producer.send(batch));
        c.await("seven deliveries", 25, () -> got.size() >= 7);
        c.exactly(got, List.of("6", "7", "7", "8", "9", "21", "23"), 25);
    }

    static void bad(Case c) throws Exception {
        String topic = c.topic(1);
        for (String sql : List.of("a >", "a = 'x", "(a > 1", "a BETWEEN 5 AND 1")) {
            DefaultMQPushConsumer k = consumer(c, c.group(), topic, sql);
            k.registerMessageListener(new Case.Got());
            MQClientException e = Case.refused(MQClientException.class, () -> { k.start(); return "started"; }, sql);
            Case.same(23, e.getResponseCode(), "code for " + sql + ": " + e);
        }
    }

    static void lite(Case c) throws Exception {
        String topic = c.topic(2);
        fill(c, topic);
        DefaultLitePullConsumer k = c.lite(c.group());
        k.subscribe(topic, MessageSelector.bySql("n < 3 OR color = 'blue' AND n > 15"));
        k.start();
        List<String> got = new ArrayList<>();
        Pulling.poll(c, k, got, 4, 15);
        Thread.sleep(300);
        got.addAll(Pulling.texts(k.poll(300)));
        Collections.sort(got);
        Case.same(List.of("0", "1", "17", "2"), got, "what came");
    }

    private Filtering() {}
}
