import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.exception.*;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.message.*;

/** Producers: the ways to send, batches, sizes, compression, delays, names. */
final class Sending {
    static void cases(List<Suite.Row> rows) {
        rows.add(new Suite.Row("send.fields", 20, Sending::fields));
        rows.add(new Suite.Row("send.async", 20, Sending::async));
        rows.add(new Suite.Row("send.oneway", 20, Sending::oneway));
        rows.add(new Suite.Row("send.selector", 20, Sending::selector));
        rows.add(new Suite.Row("send.batch", 25, Sending::batch));
        rows.add(new Suite.Row("send.batch.split", 40, Sending::split));
        rows.add(new Suite.Row("send.large", 40, Sending::large));
        rows.add(new Suite.Row("send.compressed", 30, Sending::compressed));
        rows.add(new Suite.Row("send.newtopic", 30, Sending::newTopic));
        rows.add(new Suite.Row("send.refused", 20, Sending::refusals));
        rows.add(new Suite.Row("send.vip", 25, Sending::vip));
        rows.add(new Suite.Row("send.namespace", 40, Sending::namespace));
        rows.add(new Suite.Row("send.delay", 40, Sending::delay));
        rows.add(new Suite.Row("send.threads", 30, Sending::threads));
    }

    static void fields(Case c) throws Exception {
        String topic = c.topic(2);
        Message m = new Message(topic, "the tag", "k1 k2", Case.bytes("größer 🙂"));
        m.setFlag(7);
        m.putUserProperty("name", "wert mit = und ü");
        m.setBuyerId("b");
        SendResult r = Case.sent(Suite.producer.send(m));
        MessageExt got = c.readAwait(topic, 1, 10).get(0);
        Case.same("größer 🙂", Case.text(got), "body");
        Case.same("the tag", got.getTags(), "tags");
        Case.same("k1 k2", got.getKeys(), "keys");
        Case.same(7, got.getFlag(), "flag");
        Case.same("wert mit = und ü", got.getUserProperty("name"), "property");
        Case.same(r.getMsgId(), got.getMsgId(), "message id");
        Case.same(r.getOffsetMsgId(), ((MessageClientExt) got).getOffsetMsgId(), "offset id");
        Case.same(r.getQueueOffset(), got.getQueueOffset(), "queue offset");
        Case.same(r.getMessageQueue().getQueueId(), got.getQueueId(), "queue");
        Case.same(Suite.brokerName, got.getBrokerName() == null ? Suite.brokerName : got.getBrokerName(), "broker");
        Case.check(Math.abs(got.getStoreTimestamp() - System.currentTimeMillis()) < 20_000 && got.getBornTimestamp() <= got.getStoreTimestamp() + 5, "times: " + got);
        Case.same(0, got.getReconsumeTimes(), "reconsume times");
        Case.same(Suite.cluster, got.getProperty("CLUSTER"), "cluster");
    }

    static void async(Case c) throws Exception {
        String topic = c.topic(4);
        int n = 300;
        CountDownLatch done = new CountDownLatch(n);
        AtomicInteger bad = new AtomicInteger();
        Map<Integer, AtomicInteger> calls = new ConcurrentHashMap<>();
        for (int i = 0; i < n; i++) {
            int id = i;
            calls.put(i, new AtomicInteger());
            Suite.producer.send(new Message(topic, Case.bytes("m" + i)), new SendCallback() {
                @Override public void onSuccess(SendResult r) { if (r.getSendStatus() != SendStatus.SEND_OK) bad.incrementAndGet(); calls.get(id).incrementAndGet(); done.countDown(); }
                @Override public void onException(Throwable e) { bad.incrementAndGet(); calls.get(id).incrementAndGet(); done.countDown(); }
            });
        }
        Case.check(done.await(15, TimeUnit.SECONDS), done.getCount() + " callbacks missing");
        Case.same(0, bad.get(), "failed sends");
        for (AtomicInteger a : calls.values()) Case.same(1, a.get(), "calls of a callback");
        Set<String> bodies = new HashSet<>();
        for (MessageExt m : c.readAwait(topic, n, 10)) bodies.add(Case.text(m));
        Case.same(n, bodies.size(), "messages stored");
        // a refused one tells its callback, too
        CompletableFuture<Throwable> refused = new CompletableFuture<>();
        DefaultMQProducer p = c.producer();
        p.setMaxMessageSize(16 << 20);
        p.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        p.start();
        p.send(new Message(topic, new byte[(4 << 20) + 1]), new SendCallback() {
            @Override public void onSuccess(SendResult r) { refused.complete(null); }
            @Override public void onException(Throwable e) { refused.complete(e); }
        });
        Throwable e = refused.get(10, TimeUnit.SECONDS);
        Case.check(e instanceof MQBrokerException && ((MQBrokerException) e).getResponseCode() == 13, "over the limit: " + e);
    }

    static void oneway(Case c) throws Exception {
        String topic = c.topic(4);
        List<MessageQueue> qs = Suite.producer.fetchPublishMessageQueues(topic);
        Set<String> want = new HashSet<>();
        for (int i = 0; i < 60; i++) {
            Message m = new Message(topic, Case.bytes("o" + i));
            want.add("o" + i);
            if (i % 3 == 0) Suite.producer.sendOneway(m);
            else if (i % 3 == 1) Suite.producer.sendOneway(m, qs.get(i % 4));
            else Suite.producer.sendOneway(m, (l, msg, arg) -> l.get((Integer) arg % l.size()), i);
        }
        Set<String> got = new HashSet<>();
        for (MessageExt m : c.readAwait(topic, 60, 10)) got.add(Case.text(m));
        Case.same(want, got, "stored");
    }

    static void selector(Case c) throws Exception {
        String topic = c.topic(8);
        for (int i = 0; i < 40; i++) {
            SendResult r = Case.sent(Suite.producer.send(new Message(topic, Case.bytes("s" + i)), (l, m, arg) -> l.get((Integer) arg), i % 8));
            Case.same(i % 8, r.getMessageQueue().getQueueId(), "queue chosen");
            Case.same((long) (i / 8), r.getQueueOffset(), "offset in the queue");
        }
        for (MessageQueue q : Case.queues(topic)) Case.same(5L, Suite.reader.maxOffset(q), "end of " + q);
        for (MessageExt m : Case.read(topic)) Case.same(Integer.parseInt(Case.text(m).substring(1)) % 8, m.getQueueId(), "queue of " + Case.text(m));
        CompletableFuture<SendResult> f = new CompletableFuture<>();
        Suite.producer.send(new Message(topic, Case.bytes("cb")), (l, m, arg) -> l.get(7), null, new SendCallback() {
            @Override public void onSuccess(SendResult r) { f.complete(r); }
            @Override public void onException(Throwable e) { f.completeExceptionally(e); }
        });
        Case.same(7, f.get(10, TimeUnit.SECONDS).getMessageQueue().getQueueId(), "queue of the asynchronous send");
    }

    static void batch(Case c) throws Exception {
        String topic = c.topic(4);
        Case.Got all = c.consume(c.group(), topic, "*"), red = c.consume(c.group(), topic, "red || green");
        List<Message> batch = new ArrayList<>();
        List<String> want = new ArrayList<>(), wantRed = new ArrayList<>();
        String[] tags = {"red", "green", "blue"};
        for (int i = 0; i < 30; i++) {
            Message m = new Message(topic, tags[i % 3], "bk" + i, Case.bytes("b" + i));
            m.putUserProperty("n", "" + i);
            batch.add(m);
            want.add("b" + i);
            if (i % 3 < 2) wantRed.add("b" + i);
        }
        MessageQueue q = Case.queues(topic).get(2);
        SendResult r = Case.sent(Suite.producer.send(batch, q));
        Case.same(30, r.getMsgId().split(",").length, "ids answered");
        Case.same(30, r.getOffsetMsgId().split(",").length, "offset ids answered");
        Case.same(2, r.getMessageQueue().getQueueId(), "queue");
        c.exactly(all, want, 10);
        c.exactly(red, wantRed, 10);
        String[] ids = r.getOffsetMsgId().split(","), keys = r.getMsgId().split(",");
        for (int i = 0; i < 30; i++) {
            MessageExt m = all.of("b" + i);
            Case.same(r.getQueueOffset() + i, m.getQueueOffset(), "offset of item " + i);
            Case.same(ids[i], ((MessageClientExt) m).getOffsetMsgId(), "offset id of item " + i);
            Case.same(keys[i], m.getMsgId(), "id of item " + i);
            Case.same("" + i, m.getUserProperty("n"), "property of item " + i);
        }
        // asynchronous, without a queue
        CompletableFuture<SendResult> f = new CompletableFuture<>();
        List<Message> second = new ArrayList<>();
        for (int i = 0; i < 5; i++) second.add(new Message(topic, "blue", Case.bytes("c" + i)));
        Suite.producer.send(second, new SendCallback() {
            @Override public void onSuccess(SendResult s) { f.complete(s); }
            @Override public void onException(Throwable e) { f.completeExceptionally(e); }
        });
        Case.sent(f.get(10, TimeUnit.SECONDS));
        c.await("the second batch", 10, () -> all.size() == 35);
    }

    /** A client that splits what is too large for one batch. */
    static void split(Case c) throws Exception {
        String topic = c.topic(2);
        DefaultMQProducer p = c.producer();
        p.start();
        List<Message> all = new ArrayList<>();
        Random random = new Random(1);
        for (int i = 0; i < 60; i++) {
            byte[] b = new byte[100_000];
            random.nextBytes(b);
            Message m = new Message(topic, "t" + i % 5, "k" + i, b);
            m.putUserProperty("n", "" + i);
            all.add(m);
        }
        int sends = 0;
        for (int from = 0; from < all.size(); sends++) {
            int to = from, size = 0;
            while (to < all.size() && size + all.get(to).getBody().length + 300 <= 1_000_000) size += all.get(to++).getBody().length + 300;
            Case.sent(p.send(new ArrayList<>(all.subList(from, to))));
            from = to;
        }
        List<MessageExt> got = c.readAwait(topic, 60, 20);
        Case.same(60, got.size(), "stored");
        for (MessageExt m : got)
            Case.check(Arrays.equals(all.get(Integer.parseInt(m.getUserProperty("n"))).getBody(), m.getBody()), "body of item " + m.getUserProperty("n"));
        // all of it at once is more than one batch may hold
        p.setMaxMessageSize(16 << 20);
        Exception e = Case.refused(Exception.class, () -> p.send(all), "a batch of 6 MB");
        Case.check(Suite.rocketmq || e instanceof MQBrokerException && ((MQBrokerException) e).getResponseCode() == 13, "a batch of 6 MB: " + e);
        c.note = sends + " batches";
    }

    static void large(Case c) throws Exception {
        String topic = c.topic(1);
        DefaultMQProducer p = c.producer();
        p.setMaxMessageSize(16 << 20);
        p.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        p.start();
        Random random = new Random(2);
        List<byte[]> bodies = new ArrayList<>();
        for (int size : new int[]{1, 4095, 4096, 65_536, 1 << 20, (4 << 20) - 1, 4 << 20}) {
            byte[] b = new byte[size];
            random.nextBytes(b);
            bodies.add(b);
            Case.sent(p.send(new Message(topic, b)));
        }
        MQBrokerException e = Case.refused(MQBrokerException.class, () -> p.send(new Message(topic, new byte[(4 << 20) + 1])), "a body over the limit");
        Case.same(13, e.getResponseCode(), "code of a body over the limit");
        Case.same(10, Case.refused(MQClientException.class, () -> Suite.producer.send(new Message(topic, new byte[(4 << 20) + 1])), "the client's own limit").getResponseCode() == 13 ? 10 : 0, "the client's own answer");
        Case.Got got = new Case.Got();
        Map<Integer, byte[]> came = new ConcurrentHashMap<>();
        DefaultMQPushConsumer consumer = c.consumer(c.group(), topic, "*");
        consumer.registerMessageListener((org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently) (msgs, x) -> {
            for (MessageExt m : msgs) came.put(m.getBody().length, m.getBody());
            return org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        c.await("large bodies", 25, () -> came.size() == bodies.size());
        for (byte[] b : bodies) Case.check(Arrays.equals(b, came.get(b.length)), "body of " + b.length + " bytes");
        if (!Suite.rocketmq) Case.check(e.getErrorMessage().contains("4194304"), "the error does not name the limit: " + e.getErrorMessage());
    }

    static void compressed(Case c) throws Exception {
        String topic = c.topic(2);
        StringBuilder b = new StringBuilder();
        for (int i = 0; i < 60_000; i++) b.append((char) ('a' + (i * i) % 26));
        String body = b.toString();
        List<String> kinds = canChoose() ? List.of("ZLIB", "LZ4", "ZSTD") : List.of("ZLIB");
        for (String kind : kinds) {
            DefaultMQProducer p = c.producer();
            p.setCompressMsgBodyOverHowmuch(1000);
            if (canChoose()) setCompression(p, kind);
            p.start();
            Case.sent(p.send(new Message(topic, kind, "k", Case.bytes(kind + body))));
            Case.sent(p.send(new Message(topic, kind, "k", Case.bytes("short"))));
        }
        Case.Got got = c.consume(c.group(), topic, "*");
        c.await("compressed messages", 15, () -> got.size() == 2 * kinds.size());
        for (String kind : kinds) {
            MessageExt m = got.of(kind + body);
            Case.check(m != null, kind + ": the body is not what was sent");
            Case.check(m.getStoreSize() < body.length() / 2, kind + ": stored " + m.getStoreSize() + " bytes");
        }
        c.note = String.join(", ", kinds);
    }

    static boolean canChoose() {
        return Arrays.stream(DefaultMQProducer.class.getMethods()).anyMatch(m -> m.getName().equals("setCompressType"));
    }

    static void setCompression(DefaultMQProducer p, String kind) throws Exception { // 4.9.8 does not know the type
        Class<?> type = Class.forName("org.apache.rocketmq.common.compression.CompressionType");
        p.getClass().getMethod("setCompressType", type).invoke(p, type.getMethod("of", String.class).invoke(null, kind));
    }

    /** A topic that nobody made, and a consumer that waits for it. */
    static void newTopic(Case c) throws Exception {
        String topic = c.unique("t");
        Case.Got got = new Case.Got();
        DefaultMQPushConsumer consumer = c.consumer(c.group(), topic, "*");
        consumer.setPollNameServerInterval(1000);
        consumer.registerMessageListener(got);
        consumer.start();
        DefaultMQProducer p = c.producer();
        p.setDefaultTopicQueueNums(3);
        p.start();
        for (int i = 0; i < 12; i++) Case.sent(p.send(new Message(topic, Case.bytes("n" + i))));
        c.await("messages of a new topic", 25, () -> got.size() == 12);
        Case.same(3, Suite.admin.examineTopicConfig(Suite.broker, topic).getWriteQueueNums(), "queues");
    }

    static void refusals(Case c) throws Exception {
        String topic = c.topic(1);
        var config = Suite.admin.examineTopicConfig(Suite.broker, topic);
        MessageQueue q = Case.queues(topic).get(0);
        Case.refused(MQClientException.class, () -> Suite.producer.send(new Message(topic, new byte[0])), "an empty body");
        Case.refused(MQClientException.class, () -> Suite.producer.send(new Message("bad topic!", Case.bytes("x"))), "a bad topic name");
        Message tooMany = new Message(topic, Case.bytes("x"));
        tooMany.putUserProperty("p", "y".repeat(33_000));
        MQBrokerException e = Case.refused(MQBrokerException.class, () -> Suite.producer.send(tooMany), "properties of 33,000 bytes");
        Case.same(13, e.getResponseCode(), "code for properties of 33,000 bytes");
        e = Case.refused(MQBrokerException.class, () -> Suite.producer.send(new Message(topic, Case.bytes("x")), new MessageQueue(topic, Suite.brokerName, 9)), "a queue that is not there");
        Case.check(e.getResponseCode() == 1 || e.getResponseCode() == 29, "code for queue 9: " + e);
        Case.same(0L, Suite.reader.maxOffset(q), "messages stored");
        config.setPerm(4); // read only; RocketMQ stores the message all the same
        Suite.admin.createAndUpdateTopicConfig(Suite.broker, config);
        if (!Suite.rocketmq) {
            e = Case.refused(MQBrokerException.class, () -> Suite.producer.send(new Message(topic, Case.bytes("x")), q), "a send to a read-only topic");
            Case.same(16, e.getResponseCode(), "code for a read-only topic");
        }
    }

    static void vip(Case c) throws Exception {
        String topic = c.topic(4), group = c.group();
        Case.Got got = new Case.Got();
        DefaultMQPushConsumer consumer = c.consumer(group, topic, "*");
        consumer.setVipChannelEnabled(true);
        consumer.registerMessageListener(got);
        consumer.start();
        List<String> want = new ArrayList<>();
        DefaultMQProducer[] ps = new DefaultMQProducer[2];
        for (int k = 0; k < 2; k++) {
            DefaultMQProducer p = ps[k] = c.producer();
            p.setVipChannelEnabled(k == 0);
            p.start();
            for (int i = 0; i < 10; i++) {
                want.add(k + "v" + i);
                Case.sent(p.send(new Message(topic, Case.bytes(k + "v" + i))));
            }
            p.sendOneway(new Message(topic, Case.bytes(k + "oneway")));
            want.add(k + "oneway");
            Case.sent(p.send(List.of(new Message(topic, Case.bytes(k + "batch")))));
            want.add(k + "batch");
        }
        c.exactly(got, want, 15);
        Message viewed = ps[0].viewMessage(topic, got.all.get(0).getMsgId());
        Case.same(Case.text(got.all.get(0)), Case.text(viewed), "viewed over the VIP port");
    }

    static void namespace(Case c) throws Exception {
        String plain = c.unique("t"), ns = "ns" + Suite.run, group = c.unique("g");
        c.topic(ns + "%" + plain, 2, false);
        c.topic(plain, 2, false);
        DefaultMQProducer p = c.producer();
        p.setNamespace(ns);
        p.start();
        Case.Got inside = new Case.Got(), outside = c.consume(c.group(), plain, "*");
        List<String> topics = new CopyOnWriteArrayList<>();
        DefaultMQPushConsumer consumer = c.consumer(group, null, null);
        consumer.setNamespace(ns);
        consumer.subscribe(plain, "*");
        consumer.registerMessageListener((org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently) (msgs, x) -> {
            for (MessageExt m : msgs) { inside.add(m); topics.add(m.getTopic()); }
            x.setDelayLevelWhenNextConsume(1);
            return msgs.get(0).getReconsumeTimes() == 0 && Case.text(msgs.get(0)).equals("again") ? org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus.RECONSUME_LATER
                : org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Case.sent(p.send(new Message(plain, Case.bytes("in"))));
        Case.sent(p.send(new Message(plain, Case.bytes("again"))));
        c.send(plain, "out");
        c.await("the messages of the namespace and a retry", 30, () -> inside.times("in") == 1 && inside.times("again") == 2);
        c.await("the message outside", 10, () -> outside.size() == 1);
        Case.same("out", outside.list().get(0), "outside");
        Case.same(Set.of(plain), new HashSet<>(topics), "topics as the listener sees them");
        Case.same(2, Case.read(ns + "%" + plain).size(), "stored under the namespace");
    }

    static void delay(Case c) throws Exception {
        String topic = c.topic(4);
        Case.Got got = c.consume(c.group(), topic, "*");
        long[] delays = {1000, 5000, 10_000};
        Map<String, Long> due = new HashMap<>();
        for (int i = 0; i < 45; i++) {
            int level = i % 3 + 1;
            Message m = new Message(topic, "t", "k", Case.bytes("level " + level + " number " + i));
            m.setDelayTimeLevel(level);
            due.put(Case.text(m), System.currentTimeMillis() + delays[level - 1]);
            Case.sent(Suite.producer.send(m));
        }
        c.exactly(got, due.keySet(), 25);
        long worst = 0, stored = 0;
        for (var e : due.entrySet()) {
            long late = got.at.get(e.getKey()) - e.getValue();
            Case.check(late >= -1, e.getKey() + " came " + -late + " ms early");
            worst = Math.max(worst, late);
            stored = Math.max(stored, got.of(e.getKey()).getStoreTimestamp() - e.getValue()); // without the client's part
        }
        Case.check(stored < 2000, "the latest was stored " + stored + " ms late");
        c.note = "stored at most " + stored + " ms late, here at most " + worst;
    }

    /** Many threads share a producer. */
    static void threads(Case c) throws Exception {
        String topic = c.topic(4);
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<?>> all = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            int id = t;
            all.add(pool.submit(() -> { for (int i = 0; i < 50; i++) c.send(topic, id + "-" + i); return null; }));
        }
        for (Future<?> f : all) f.get();
        pool.shutdown();
        Set<String> got = new HashSet<>();
        for (MessageExt m : c.readAwait(topic, 400, 10)) got.add(Case.text(m));
        Case.same(400, got.size(), "messages stored");
    }

    private Sending() {}
}
