import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.common.message.*;

/** Transactional producers. The server's transactionTimeOut and transactionCheckInterval are set to a second or two by the script. */
final class Transactions {
    static void cases(List<Suite.Row> rows) {
        rows.add(new Suite.Row("tx.answers", 40, Transactions::answers));
        rows.add(new Suite.Row("tx.checks", 50, Transactions::checks));
        rows.add(new Suite.Row("tx.many", 30, Transactions::many));
        rows.add(new Suite.Row("tx.killed", 60, Transactions::killed));
        rows.add(new Suite.Row("tx.immunity", 50, Transactions::immunity));
        rows.add(new Suite.Row("tx.other", 50, Transactions::otherProducer));
    }

    /** Answers from a table, and what was asked. */
    static final class Ledger implements TransactionListener {
        final Map<String, LocalTransactionState> first = new ConcurrentHashMap<>();
        final Map<String, Deque<LocalTransactionState>> later = new ConcurrentHashMap<>();
        final Map<String, AtomicInteger> checked = new ConcurrentHashMap<>();
        final Map<String, MessageExt> asked = new ConcurrentHashMap<>();
        final Map<String, Long> checkedAt = new ConcurrentHashMap<>();

        void plan(String body, LocalTransactionState answer, LocalTransactionState... checks) {
            if (answer != null) first.put(body, answer);
            later.put(body, new ConcurrentLinkedDeque<>(List.of(checks)));
        }

        @Override public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
            LocalTransactionState s = first.get(Case.text(m));
            if (s == null) throw new IllegalStateException("the local transaction broke");
            return s;
        }

        @Override public LocalTransactionState checkLocalTransaction(MessageExt m) {
            String body = Case.text(m);
            checked.computeIfAbsent(body, k -> new AtomicInteger()).incrementAndGet();
            asked.put(body, m);
            checkedAt.putIfAbsent(body, System.currentTimeMillis());
            LocalTransactionState s = later.getOrDefault(body, new ArrayDeque<>()).poll();
            return s == null ? LocalTransactionState.UNKNOW : s;
        }

        int checks(String body) { return checked.getOrDefault(body, new AtomicInteger()).get(); }
    }

    static TransactionMQProducer producer(Case c, String group, Ledger l) throws Exception {
        TransactionMQProducer p = new TransactionMQProducer(group);
        p.setNamesrvAddr(Suite.namesrv);
        p.setSendMsgTimeout(10_000);
        p.setTransactionListener(l);
        p.start();
        c.after(p::shutdown);
        return p;
    }

    static final LocalTransactionState COMMIT = LocalTransactionState.COMMIT_MESSAGE, ROLLBACK = LocalTransactionState.ROLLBACK_MESSAGE, UNKNOWN = LocalTransactionState.UNKNOW;

    /** Commit and rollback at once; what comes is the message that was sent. */
    static void answers(Case c) throws Exception {
        String topic = c.topic(2), group = c.group();
        Case.Got got = c.consume(c.group(), topic, "*"), tagged = c.consume(c.group(), topic, "yes");
        Ledger l = new Ledger();
        l.plan("commit", COMMIT);
        l.plan("rollback", ROLLBACK);
        l.plan("other", COMMIT);
        TransactionMQProducer p = producer(c, group, l);
        Message m = new Message(topic, "yes", "key1", Case.bytes("commit"));
        m.putUserProperty("own", "value");
        m.setFlag(3);
        TransactionSendResult r = p.sendMessageInTransaction(m, "argument");
        Case.same(SendStatus.SEND_OK, r.getSendStatus(), "status");
        Case.same(COMMIT, r.getLocalTransactionState(), "state");
        p.sendMessageInTransaction(new Message(topic, "yes", "key2", Case.bytes("rollback")), null);
        p.sendMessageInTransaction(new Message(topic, "no", "key3", Case.bytes("other")), null);
        c.await("the committed messages", 10, () -> got.size() >= 2 && tagged.size() >= 1);
        Thread.sleep(3000); // a rolled back message would have come
        Case.same(1, got.times("commit"), "committed message came");
        Case.same(2, got.size(), "messages");
        Case.same(List.of("commit"), tagged.list(), "messages by tag");
        MessageExt came = got.of("commit");
        Case.same(topic, came.getTopic(), "topic");
        Case.same(r.getMsgId(), came.getMsgId(), "id");
        Case.same(r.getTransactionId(), came.getTransactionId(), "transaction id");
        Case.same("value", came.getUserProperty("own"), "property");
        Case.same("key1", came.getKeys(), "keys");
        Case.same(3, came.getFlag(), "flag");
        Case.same(r.getMessageQueue().getQueueId(), came.getQueueId(), "queue");
        Case.check(Suite.rocketmq || l.checks("commit") + l.checks("rollback") == 0, "asked for what was answered");
        Case.same(2, Case.read(topic).size(), "messages in the topic");
        MessageExt found = Suite.producer.viewMessage(topic, r.getMsgId());
        Case.same(topic, found.getTopic(), "by unique key");
    }

    /** Unknown first; the check commits, rolls back, or is unknown again. */
    static void checks(Case c) throws Exception {
        String topic = c.topic(2);
        Case.Got got = c.consume(c.group(), topic, "*");
        Ledger l = new Ledger();
        l.plan("commit", UNKNOWN, COMMIT);
        l.plan("rollback", UNKNOWN, ROLLBACK);
        l.plan("twice", UNKNOWN, UNKNOWN, COMMIT);
        l.plan("broke", null, COMMIT);
        TransactionMQProducer p = producer(c, c.group(), l);
        Map<String, TransactionSendResult> sent = new HashMap<>();
        for (String b : List.of("commit", "rollback", "twice", "broke"))
            sent.put(b, p.sendMessageInTransaction(new Message(topic, "t", b, Case.bytes(b)), null));
        Case.check(got.size() == 0, "came before it was committed: " + got.list());
        c.await("the messages that a check commits", 40, () -> got.bodies().containsAll(List.of("commit", "twice", "broke")) && l.checks("rollback") >= 1);
        Thread.sleep(2500);
        Case.same(3, got.size(), "messages, " + got.list());
        if (!Suite.rocketmq) { // it asks again while the answer is on its way
            Case.same(1, l.checks("commit"), "checks of the committed");
            Case.same(1, l.checks("rollback"), "checks of the rolled back");
            Case.same(2, l.checks("twice"), "checks of the one that was unknown again");
        }
        MessageExt asked = l.asked.get("commit");
        Case.same(topic, asked.getTopic(), "topic as the check sees it");
        Case.same(sent.get("commit").getTransactionId(), asked.getTransactionId(), "transaction id as the check sees it");
        Case.same("commit", asked.getKeys(), "keys as the check sees them");
        Case.same(sent.get("commit").getMsgId(), got.of("commit").getMsgId(), "id");
        long wait = l.checkedAt.get("commit") - asked.getBornTimestamp();
        Case.check(wait >= 1900, "checked after " + wait + " ms, transactionTimeOut is 2000");
        c.note = "first check after " + wait + " ms";
    }

    static void many(Case c) throws Exception {
        String topic = c.topic(4);
        Case.Got got = c.consume(c.group(), topic, "*");
        Ledger l = new Ledger();
        TransactionMQProducer p = producer(c, c.group(), l);
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<?>> all = new ArrayList<>();
        List<String> want = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            String b = "m" + i;
            l.plan(b, i % 4 == 3 ? ROLLBACK : COMMIT);
            if (i % 4 != 3) want.add(b);
            all.add(pool.submit(() -> p.sendMessageInTransaction(new Message(topic, Case.bytes(b)), null)));
        }
        for (Future<?> f : all) f.get();
        pool.shutdown();
        c.exactly(got, want, 15);
    }

    /** A producer dies after the half message; the next one of its group is asked. */
    static void killed(Case c) throws Exception {
        String topic = c.topic(2), group = c.group();
        Case.Got got = c.consume(c.group(), topic, "*");
        Process dying = c.apart("half", group, topic, "left commit", "left rollback");
        List<String> said = Case.lines(dying);
        Case.check(dying.waitFor(40, TimeUnit.SECONDS), "the producer did not end");
        Case.same(3, dying.exitValue(), "exit of the producer that kills itself, which said " + said);
        Ledger l = new Ledger();
        l.plan("left commit", null, COMMIT);
        l.plan("left rollback", null, ROLLBACK);
        TransactionMQProducer next = producer(c, group, l);
        // a producer is known to the broker once it has sent something and its heart beats
        l.plan("own", COMMIT);
        next.sendMessageInTransaction(new Message(c.topic(1), Case.bytes("own")), null);
        next.getDefaultMQProducerImpl().getMqClientFactory().sendHeartbeatToAllBrokerWithLock();
        c.await("the checks", 30, () -> l.checks("left commit") > 0 && l.checks("left rollback") > 0);
        c.await("the message", 10, () -> got.size() > 0);
        Thread.sleep(2500);
        Case.same(List.of("left commit"), got.list(), "messages");
        Case.same(topic, l.asked.get("left commit").getTopic(), "topic as the check sees it");
    }

    /** Any producer of the group is asked, also while the first lives. */
    static void otherProducer(Case c) throws Exception {
        String topic = c.topic(2), group = c.group();
        Case.Got got = c.consume(c.group(), topic, "*");
        Ledger a = new Ledger(), b = new Ledger();
        List<String> bodies = new ArrayList<>();
        for (int i = 0; i < 10; i++) { bodies.add("m" + i); a.plan("m" + i, UNKNOWN, COMMIT); b.plan("m" + i, UNKNOWN, COMMIT); }
        TransactionMQProducer p = producer(c, group, a);
        producer(c, group, b);
        for (String m : bodies) p.sendMessageInTransaction(new Message(topic, Case.bytes(m)), null);
        c.exactly(got, bodies, 40);
        int asked = 0;
        for (String m : bodies) asked += a.checks(m) + b.checks(m);
        Case.check(Suite.rocketmq || asked == 10, "checks in all: " + asked);
    }

    /** CHECK_IMMUNITY_TIME_IN_SECONDS puts the first check off. */
    static void immunity(Case c) throws Exception {
        String topic = c.topic(1);
        Case.Got got = c.consume(c.group(), topic, "*");
        Ledger l = new Ledger();
        l.plan("immune", UNKNOWN, COMMIT);
        TransactionMQProducer p = producer(c, c.group(), l);
        Message m = new Message(topic, Case.bytes("immune"));
        m.putUserProperty("CHECK_IMMUNITY_TIME_IN_SECONDS", "6");
        long at = System.currentTimeMillis();
        p.sendMessageInTransaction(m, null);
        c.await("the message", 40, () -> got.size() == 1);
        long wait = l.checkedAt.get("immune") - at;
        Case.check(wait >= 5900, "checked after " + wait + " ms in spite of 6 s of immunity");
        c.note = "first check after " + wait + " ms";
    }

    private Transactions() {}
}
