import java.util.*;
import java.util.concurrent.*;
import org.apache.rocketmq.client.consumer.*;
import org.apache.rocketmq.common.message.*;

/** Lite pull consumers and the old pull consumer. */
final class Pulling {
    static void cases(List<Suite.Row> rows) {
        rows.add(new Suite.Row("lite.subscribe", 40, Pulling::subscribe));
        rows.add(new Suite.Row("lite.assign", 40, Pulling::assign));
        rows.add(new Suite.Row("lite.share", 50, Pulling::share));
        rows.add(new Suite.Row("lite.newqueues", 30, Pulling::newQueues));
        rows.add(new Suite.Row("pull.statuses", 30, Pulling::statuses));
        rows.add(new Suite.Row("pull.tags", 20, Pulling::tags));
        rows.add(new Suite.Row("pull.parked", 40, Pulling::parked));
        rows.add(new Suite.Row("pull.offsets", 30, Pulling::offsets));
    }

    static void poll(Case c, DefaultLitePullConsumer k, Collection<String> into, int n, double seconds) throws Exception {
        c.await(n + " messages by poll", seconds, () -> { for (MessageExt m : k.poll(200)) into.add(Case.text(m)); return into.size() >= n; });
    }

    /** The group goes on where it had committed. */
    static void subscribe(Case c) throws Exception {
        String topic = c.topic(4), group = c.group();
        List<String> want = new ArrayList<>(), got = new ArrayList<>();
        for (int i = 0; i < 40; i++) { String tag = i % 2 == 0 ? "even" : "odd"; c.send(topic, tag, "k", "m" + i); if (i % 2 == 0) want.add("m" + i); }
        DefaultLitePullConsumer a = c.lite(group);
        a.setAutoCommit(false);
        a.subscribe(topic, "even || never");
        a.start();
        Case.check(a.isRunning(), "not running");
        poll(c, a, got, 20, 15);
        Collections.sort(want);
        Collections.sort(got);
        Case.same(want, got, "what came");
        a.commitSync();
        Thread.sleep(300);
        a.shutdown();
        List<String> second = new ArrayList<>();
        var later = c.send(topic, "even", "k", "later");
        DefaultLitePullConsumer b = c.lite(group);
        b.setAutoCommitIntervalMillis(1000);
        b.subscribe(topic, "even");
        b.start();
        poll(c, b, second, 1, 15);
        Case.same(List.of("later"), second, "after the commit");
        c.await("the offsets by automatic commit", 15, () -> {
            b.poll(100);
            var o = Suite.admin.examineConsumeStats(group, topic).getOffsetTable().get(later.getMessageQueue());
            return o != null && o.getConsumerOffset() == later.getQueueOffset() + 1;
        });
    }

    /** Queues chosen by hand: seek, pause, commit, offset for a time. */
    static void assign(Case c) throws Exception {
        String topic = c.topic(3), group = c.group();
        List<MessageQueue> qs = Case.queues(topic);
        for (int i = 0; i < 10; i++) c.send(qs.get(0), "a" + i);
        Thread.sleep(20);
        long between = System.currentTimeMillis();
        Thread.sleep(20);
        for (int i = 10; i < 20; i++) c.send(qs.get(0), "a" + i);
        for (int i = 0; i < 10; i++) c.send(qs.get(1), "b" + i);
        for (int i = 0; i < 10; i++) c.send(qs.get(2), "c" + i);
        DefaultLitePullConsumer k = c.lite(group);
        k.setAutoCommit(false);
        k.start();
        List<MessageQueue> known = new ArrayList<>(k.fetchMessageQueues(topic));
        Collections.sort(known);
        Case.same(qs, known, "queues");
        Case.same(10L, k.offsetForTimestamp(qs.get(0), between), "offset for the time between");
        k.assign(qs.subList(0, 2));
        k.seek(qs.get(0), 15);
        k.seekToEnd(qs.get(1));
        List<String> got = new ArrayList<>();
        c.await("the last message", 10, () -> { got.addAll(texts(k.poll(200))); return got.contains("a19"); });
        got.addAll(texts(k.poll(300)));
        got.removeAll(List.of("a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9")); // 4.9.8 may keep what it pulled before the seek
        Case.same(List.of("a15", "a16", "a17", "a18", "a19"), got, "after seek");
        k.seekToBegin(qs.get(1));
        got.clear();
        poll(c, k, got, 10, 10);
        Case.check(got.get(0).equals("b0") && got.size() == 10, "after seekToBegin: " + got);
        k.pause(List.of(qs.get(0)));
        c.send(qs.get(0), "carried"); // by the pull that is parked already
        poll(c, k, new ArrayList<>(), 1, 10);
        c.send(qs.get(0), "paused");
        c.send(qs.get(1), "not paused");
        got.clear();
        poll(c, k, got, 1, 10);
        got.addAll(texts(k.poll(1000)));
        Case.same(List.of("not paused"), got, "while a queue is paused");
        k.resume(List.of(qs.get(0)));
        got.clear();
        poll(c, k, got, 1, 10);
        Case.same(List.of("paused"), got, "after resume");
        k.commitSync();
        c.await("the committed offset", 10, () -> Long.valueOf(22).equals(k.committed(qs.get(0))));
        Case.same(11L, k.committed(qs.get(1)), "committed in the second queue");
        // a seek outside is refused by the client, which asks the broker for the limits
        Case.refused(org.apache.rocketmq.client.exception.MQClientException.class, () -> { k.seek(qs.get(0), 1000); return "seek"; }, "a seek behind the end");
        Case.check(Suite.rocketmq || k.committed(qs.get(2)) < 0, "committed in a queue that was not assigned: " + k.committed(qs.get(2)));
    }

    static List<String> texts(List<MessageExt> l) { List<String> s = new ArrayList<>(); for (MessageExt m : l) s.add(Case.text(m)); return s; }

    /** Two of a group share the queues, and one takes over when the other goes. */
    static void share(Case c) throws Exception {
        String topic = c.topic(4), group = c.group();
        DefaultLitePullConsumer a = c.lite(group), b = c.lite(group);
        Set<MessageQueue> shareA = ConcurrentHashMap.newKeySet();
        a.subscribe(topic, "*");
        b.subscribe(topic, "*");
        a.start();
        b.start();
        c.await("both to have two queues", 30, () -> a.assignment().size() == 2 && b.assignment().size() == 2);
        shareA.addAll(a.assignment());
        shareA.addAll(b.assignment());
        Case.same(4, shareA.size(), "queues in all");
        Set<String> got = new HashSet<>();
        for (int i = 0; i < 20; i++) c.send(topic, "m" + i);
        c.await("20 messages", 10, () -> { got.addAll(texts(a.poll(100))); got.addAll(texts(b.poll(100))); return got.size() == 20; });
        a.commitSync();
        a.shutdown();
        c.await("the other to have all queues", 30, () -> b.assignment().size() == 4);
        for (int i = 20; i < 40; i++) c.send(topic, "m" + i);
        c.await("the rest", 10, () -> { got.addAll(texts(b.poll(100))); return got.size() == 40; });
    }

    /** A listener hears of queues that are added. */
    static void newQueues(Case c) throws Exception {
        String topic = c.topic(2);
        DefaultLitePullConsumer k = c.lite(c.group());
        k.setTopicMetadataCheckIntervalMillis(500);
        Set<MessageQueue> heard = ConcurrentHashMap.newKeySet();
        k.start();
        k.registerTopicMessageQueueChangeListener(topic, (t, queues) -> heard.addAll(queues));
        Thread.sleep(6000); // the client looks after 5 s for the first time
        c.topic(topic, 5, false);
        c.await("five queues", 15, () -> heard.size() == 5);
    }

    static DefaultMQPullConsumer puller(Case c) throws Exception {
        DefaultMQPullConsumer k = new DefaultMQPullConsumer(c.group());
        k.setNamesrvAddr(Suite.namesrv);
        k.start();
        c.after(k::shutdown);
        return k;
    }

    /** Found, nothing new, nothing that matches, offset out of range. */
    static void statuses(Case c) throws Exception {
        String topic = c.topic(1);
        DefaultMQPullConsumer k = puller(c);
        MessageQueue q = k.fetchSubscribeMessageQueues(topic).iterator().next();
        for (int i = 0; i < 50; i++) c.send(topic, i % 2 == 0 ? "even" : "odd", "k", "m" + i);
        PullResult r = k.pull(q, "*", 0, 10);
        Case.same(PullStatus.FOUND, r.getPullStatus(), "status");
        Case.same(10, r.getMsgFoundList().size(), "messages");
        Case.same(10L, r.getNextBeginOffset(), "next");
        Case.same(0L, r.getMinOffset(), "min");
        Case.same(50L, r.getMaxOffset(), "max");
        r = k.pull(q, "*", 50, 10);
        Case.same(PullStatus.NO_NEW_MSG, r.getPullStatus(), "at the end");
        r = k.pull(q, "nothing", 0, 10);
        Case.same(PullStatus.NO_MATCHED_MSG, r.getPullStatus(), "with a tag that is not there");
        Case.same(50L, r.getNextBeginOffset(), "next after no match");
        r = k.pull(q, "*", 1000, 10);
        Case.same(PullStatus.OFFSET_ILLEGAL, r.getPullStatus(), "behind the end");
        Case.same(50L, r.getNextBeginOffset(), "next after an illegal offset");
        CompletableFuture<PullResult> f = new CompletableFuture<>();
        k.pull(q, "*", 40, 32, new PullCallback() {
            @Override public void onSuccess(PullResult p) { f.complete(p); }
            @Override public void onException(Throwable e) { f.completeExceptionally(e); }
        });
        Case.same(10, f.get(10, TimeUnit.SECONDS).getMsgFoundList().size(), "messages of the asynchronous pull");
    }

    static void tags(Case c) throws Exception {
        String topic = c.topic(1);
        DefaultMQPullConsumer k = puller(c);
        MessageQueue q = k.fetchSubscribeMessageQueues(topic).iterator().next();
        String[] tags = {"a", "b", "c", "Aa", "BB", null}; // Aa and BB have the same hash
        for (int i = 0; i < 60; i++) c.send(topic, tags[i % 6], "k", tags[i % 6] + "");
        Case.same(Set.of("a", "c"), all(k, q, "a || c"), "a || c");
        Case.same(Set.of("a", "b", "c"), all(k, q, "a||b || c"), "three tags");
        Case.same(Set.of("Aa"), all(k, q, "Aa"), "of two with one hash");
        Case.same(Set.of("a", "b", "c", "Aa", "BB", "null"), all(k, q, "*"), "*");
        Case.same(Set.of(), all(k, q, "d || e"), "tags that are not there");
    }

    static Set<String> all(DefaultMQPullConsumer k, MessageQueue q, String tags) throws Exception {
        Set<String> got = new HashSet<>();
        for (long at = 0; at < 60; ) {
            PullResult r = k.pull(q, tags, at, 32);
            if (r.getPullStatus() == PullStatus.FOUND) got.addAll(texts(r.getMsgFoundList()));
            Case.check(r.getNextBeginOffset() > at, "no progress at " + at + ": " + r);
            at = r.getNextBeginOffset();
        }
        return got;
    }

    /** A pull that waits gets the message at once; its time-out is kept. */
    static void parked(Case c) throws Exception {
        String topic = c.topic(1);
        DefaultMQPullConsumer k = puller(c);
        k.setBrokerSuspendMaxTimeMillis(3000);
        MessageQueue q = k.fetchSubscribeMessageQueues(topic).iterator().next();
        c.send(topic, "a", "k", "first");
        long began = System.currentTimeMillis();
        PullResult r = k.pullBlockIfNotFound(q, "*", 1, 32);
        long took = System.currentTimeMillis() - began;
        Case.same(PullStatus.NO_NEW_MSG, r.getPullStatus(), "status after the wait");
        Case.check(took >= 2900 && took < (Suite.rocketmq ? 9000 : 6000), "waited " + took + " ms, asked for 3000"); // RocketMQ looks every 5 s
        k.setBrokerSuspendMaxTimeMillis(15_000);
        FutureTask<PullResult> f = new FutureTask<>(() -> k.pullBlockIfNotFound(q, "b || c", 1, 32));
        new Thread(f).start();
        Thread.sleep(500);
        c.send(topic, "a", "k", "not this");
        Thread.sleep(500);
        Case.check(!f.isDone(), "a message with another tag ended the wait");
        c.send(topic, "c", "k", "this");
        long at = System.currentTimeMillis();
        Case.same(List.of("this"), texts(f.get(10, TimeUnit.SECONDS).getMsgFoundList()), "what came");
        long late = System.currentTimeMillis() - at;
        Case.check(late < 1000, "came " + late + " ms after it was sent");
        c.note = late + " ms after the send";
    }

    static void offsets(Case c) throws Exception {
        String topic = c.topic(2);
        DefaultMQPullConsumer k = puller(c);
        List<MessageQueue> qs = new ArrayList<>(k.fetchSubscribeMessageQueues(topic));
        Collections.sort(qs);
        MessageQueue q = qs.get(0);
        long before = System.currentTimeMillis();
        Thread.sleep(5);
        for (int i = 0; i < 10; i++) { c.send(q, "m" + i); Thread.sleep(5); }
        MessageExt fifth = k.pull(q, "*", 5, 1).getMsgFoundList().get(0);
        Case.same(10L, k.maxOffset(q), "max");
        Case.same(0L, k.minOffset(q), "min");
        Case.same(5L, k.searchOffset(q, fifth.getStoreTimestamp()), "search at a message's time");
        Case.same(0L, k.searchOffset(q, before), "search before the first");
        Case.check(k.searchOffset(q, System.currentTimeMillis() + 60_000) >= 9, "search behind the last");
        Case.check(Math.abs(k.earliestMsgStoreTime(q) - before) < 10_000, "earliest store time");
        Case.same(0L, k.maxOffset(qs.get(1)), "max of an empty queue");
        Case.check(Suite.rocketmq || k.fetchConsumeOffset(q, true) < 0, "an offset that was never stored: " + k.fetchConsumeOffset(q, true));
        k.updateConsumeOffset(q, 7);
        k.getOffsetStore().persist(q);
        c.await("the stored offset", 10, () -> k.fetchConsumeOffset(q, true) == 7);
        k.updateConsumeOffset(q, 9);
        Case.same(9L, k.fetchConsumeOffset(q, false), "offset in memory");
    }

    private Pulling() {}
}
