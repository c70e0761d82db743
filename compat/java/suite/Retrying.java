import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.*;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.common.message.*;

/** Messages that a consumer could not use. */
final class Retrying {
    static void cases(List<Suite.Row> rows) {
        rows.add(new Suite.Row("retry.deadletter", 40, Retrying::deadLetter));
        rows.add(new Suite.Row("retry.first", 35, Retrying::firstRetry));
        rows.add(new Suite.Row("retry.atonce", 30, Retrying::atOnce));
        rows.add(new Suite.Row("retry.grouplimit", 40, Retrying::groupLimit));
        rows.add(new Suite.Row("retry.partofbatch", 40, Retrying::partOfBatch));
        rows.add(new Suite.Row("retry.sendback", 40, Retrying::sendBack));
        rows.add(new Suite.Row("retry.throws", 40, Retrying::throwing));
    }

    /** Fails whatever it gets, always with the same delay level. */
    static Case.Got failing(Case c, String group, String topic, int times, int level) throws Exception {
        Case.Got got = new Case.Got();
        DefaultMQPushConsumer k = c.consumer(group, topic, "*");
        if (times >= 0) k.setMaxReconsumeTimes(times);
        k.registerMessageListener((MessageListenerConcurrently) (msgs, x) -> {
            for (MessageExt m : msgs) got.add(m);
            x.setDelayLevelWhenNextConsume(level);
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        k.start();
        return got;
    }

    /** Two deliveries again, then the dead letter. */
    static void deadLetter(Case c) throws Exception {
        String topic = c.topic(2), group = c.group();
        var sent = c.send(topic, "tag", "key", "never");
        Case.Got got = failing(c, group, topic, 2, 1);
        MessageExt dead = c.readAwait("%DLQ%" + group, 1, 30).get(0);
        Thread.sleep(1500);
        Case.same(3, got.size(), "deliveries");
        for (int i = 0; i < 3; i++) {
            MessageExt m = got.all.get(i);
            Case.same(i, m.getReconsumeTimes(), "reconsume times of delivery " + i);
            Case.same(topic, m.getTopic(), "topic of delivery " + i);
            Case.same(sent.getMsgId(), m.getMsgId(), "id of delivery " + i);
        }
        Case.same("never", Case.text(dead), "body");
        Case.same(sent.getMsgId(), dead.getMsgId(), "id of the dead letter");
        Case.same("tag", dead.getTags(), "tag of the dead letter");
        Case.same("key", dead.getKeys(), "key of the dead letter");
        Case.same(topic, dead.getProperty("RETRY_TOPIC"), "RETRY_TOPIC");
        Case.same(1, Case.read("%DLQ%" + group).size(), "dead letters");
        if (!Suite.rocketmq) Case.same(topic, dead.getProperty("DLQ_ORIGIN_TOPIC"), "DLQ_ORIGIN_TOPIC");
        // its dead letters can be consumed like any topic
        c.exactly(c.consume(c.group(), "%DLQ%" + group, "*"), List.of("never"), 15);
    }

    /** Without a level the first comes again after 10 s. */
    static void firstRetry(Case c) throws Exception {
        String topic = c.topic(1), group = c.group();
        List<Long> at = new CopyOnWriteArrayList<>();
        DefaultMQPushConsumer k = c.consumer(group, topic, "*");
        k.registerMessageListener((MessageListenerConcurrently) (msgs, x) -> {
            at.add(System.currentTimeMillis());
            return at.size() == 1 ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        k.start();
        c.send(topic, "once more");
        c.await("the second delivery", 25, () -> at.size() == 2);
        long after = at.get(1) - at.get(0);
        Case.check(after >= 9990 && (Suite.rocketmq || after < 12_500), "came again after " + after + " ms");
        c.note = "after " + after + " ms";
    }

    /** Level -1: dead at once. */
    static void atOnce(Case c) throws Exception {
        String topic = c.topic(1), group = c.group();
        Case.Got got = failing(c, group, topic, 16, -1);
        c.send(topic, "hopeless");
        Case.same("hopeless", Case.text(c.readAwait("%DLQ%" + group, 1, 20).get(0)), "dead letter");
        Case.same(1, got.size(), "deliveries");
    }

    /** The group's own limit, set by an operator; the consumer's says nothing. */
    static void groupLimit(Case c) throws Exception {
        String topic = c.topic(1), group = c.group(1);
        DefaultMQPullConsumer k = new DefaultMQPullConsumer(group);
        k.setNamesrvAddr(Suite.namesrv);
        k.start();
        c.after(k::shutdown);
        c.send(topic, "limited");
        MessageQueue q = Case.queues(topic).get(0);
        MessageExt m = k.pull(q, "*", 0, 1).getMsgFoundList().get(0);
        k.sendMessageBack(m, 1);
        List<MessageExt> again = c.readAwait("%RETRY%" + group, 1, 15);
        Case.same(1, again.get(0).getReconsumeTimes(), "reconsume times");
        k.setMaxReconsumeTimes(1);
        k.sendMessageBack(again.get(0), 1);
        Case.same("limited", Case.text(c.readAwait("%DLQ%" + group, 1, 15).get(0)), "dead letter");
    }

    /** Of a batch the first ones are done, the rest comes again. */
    static void partOfBatch(Case c) throws Exception {
        String topic = c.topic(1);
        for (int i = 0; i < 8; i++) c.send(topic, "p" + i);
        Map<String, AtomicInteger> times = new ConcurrentHashMap<>();
        Set<String> failed = ConcurrentHashMap.newKeySet();
        DefaultMQPushConsumer k = c.consumer(c.group(), topic, "*");
        k.setConsumeMessageBatchMaxSize(8);
        k.registerMessageListener((MessageListenerConcurrently) (msgs, x) -> {
            for (MessageExt m : msgs) times.computeIfAbsent(Case.text(m), b -> new AtomicInteger()).incrementAndGet();
            if (msgs.get(0).getReconsumeTimes() == 0 && msgs.size() > 2) {
                x.setAckIndex(1);
                x.setDelayLevelWhenNextConsume(1);
                for (MessageExt m : msgs.subList(2, msgs.size())) failed.add(Case.text(m));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        k.start();
        c.await("all messages and the retries", 25, () -> times.size() == 8 && !failed.isEmpty() && failed.stream().allMatch(b -> times.get(b).get() == 2));
        times.forEach((b, n) -> Case.same(failed.contains(b) ? 2 : 1, n.get(), "deliveries of " + b));
        c.note = failed.size() + " of 8 came again";
    }

    /** A consumer gives a message back by hand, also for another group to see. */
    static void sendBack(Case c) throws Exception {
        String topic = c.topic(1), group = c.group();
        Case.Got got = new Case.Got();
        Set<String> back = ConcurrentHashMap.newKeySet();
        DefaultMQPushConsumer k = c.consumer(group, topic, "*");
        k.registerMessageListener((MessageListenerConcurrently) (msgs, x) -> {
            for (MessageExt m : msgs) {
                got.add(m);
                try { if (m.getReconsumeTimes() == 0) k.sendMessageBack(m, 2); else back.add(Case.text(m)); } catch (Exception e) { throw new IllegalStateException(e); }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        k.start();
        c.send(topic, "given back");
        c.await("the message again", 20, () -> !back.isEmpty());
        long after = got.all.get(1).getStoreTimestamp() - got.all.get(0).getStoreTimestamp();
        Case.check(after >= 4900 && after < 8000, "came again after " + after + " ms, level 2 is 5 s");
        Case.same(2, got.size(), "deliveries");
    }

    /** A listener that throws or answers null is a failure. */
    static void throwing(Case c) throws Exception {
        String topic = c.topic(1);
        Case.Got got = new Case.Got();
        DefaultMQPushConsumer k = c.consumer(c.group(), topic, "*");
        k.registerMessageListener((MessageListenerConcurrently) (msgs, x) -> {
            for (MessageExt m : msgs) got.add(m);
            x.setDelayLevelWhenNextConsume(1);
            if (msgs.get(0).getReconsumeTimes() == 0 && Case.text(msgs.get(0)).equals("throws")) throw new IllegalStateException("on purpose");
            return msgs.get(0).getReconsumeTimes() == 0 ? null : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        k.start();
        c.send(topic, "throws");
        c.send(topic, "null");
        c.await("both again", 25, () -> got.times("throws") == 2 && got.times("null") == 2);
    }

    private Retrying() {}
}
