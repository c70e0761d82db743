import java.util.*;
import java.util.concurrent.*;
import org.apache.rocketmq.client.consumer.*;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.client.exception.*;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** What mqadmin does, through its own class, while clients run. */
final class Admin {
    static void cases(List<Suite.Row> rows) {
        rows.add(new Suite.Row("query.messages", 30, Admin::queries));
        rows.add(new Suite.Row("admin.topics", 30, Admin::topics));
        rows.add(new Suite.Row("admin.groups", 40, Admin::groups));
        rows.add(new Suite.Row("admin.clients", 40, Admin::clients));
        rows.add(new Suite.Row("admin.running", 40, Admin::running));
        rows.add(new Suite.Row("admin.directly", 40, Admin::directly));
        rows.add(new Suite.Row("admin.reset", 50, Admin::reset));
        rows.add(new Suite.Row("admin.resetoffline", 30, Admin::resetOffline));
        rows.add(new Suite.Row("admin.clone", 40, Admin::cloneOffsets));
        rows.add(new Suite.Row("admin.cluster", 30, Admin::cluster));
        rows.add(new Suite.Row("admin.namesrv", 30, Admin::nameServer));
        rows.add(new Suite.Row("admin.track", 50, Admin::track));
        rows.add(new Suite.Row("admin.stats", 60, Admin::stats));
        rows.add(new Suite.Row("admin.consumequeue", 20, Admin::consumeQueue));
        rows.add(new Suite.Row("admin.writeperm", 40, Admin::writePermission).alone());
    }

    /** By key, unique key, offset id, within a time. */
    static void queries(Case c) throws Exception {
        String topic = c.topic(2), other = c.topic(2);
        long before = System.currentTimeMillis();
        SendResult r = c.send(topic, "tag", "ka kb", "one");
        for (int i = 0; i < 5; i++) c.send(topic, "tag", "kb", "more" + i);
        c.send(other, "tag", "kb", "elsewhere");
        long end = System.currentTimeMillis() + 10_000;
        c.await("the key index", 10, () -> { try { return Suite.producer.queryMessage(topic, "kb", 32, before - 1000, end).getMessageList().size() == 6; } catch (MQClientException e) { return false; } });
        List<MessageExt> found = Suite.producer.queryMessage(topic, "ka", 32, before - 1000, end).getMessageList();
        Case.same(List.of("one"), Pulling.texts(found), "by key");
        Case.same(3, Suite.producer.queryMessage(topic, "kb", 3, before - 1000, end).getMessageList().size(), "at most three");
        Case.refused(MQClientException.class, () -> Suite.producer.queryMessage(topic, "nobody", 32, 0, end), "a key that is not there");
        Case.refused(MQClientException.class, () -> Suite.producer.queryMessage(topic, "ka", 32, 0, before - 60_000), "a time before");
        MessageExt byId = Suite.producer.viewMessage(topic, r.getMsgId()), byOffset = Suite.admin.viewMessage(topic, r.getOffsetMsgId());
        Case.same("one", Case.text(byId), "by unique key");
        Case.same("one", Case.text(byOffset), "by offset id");
        Case.same("ka kb", byOffset.getKeys(), "keys");
        Case.same(r.getQueueOffset(), byOffset.getQueueOffset(), "queue offset");
        Case.refused(Exception.class, () -> Suite.producer.viewMessage(topic, r.getOffsetMsgId().substring(0, 16) + "00000000FFFFFF00"), "an offset id that is not there");
    }

    static void topics(Case c) throws Exception {
        String topic = c.topic(4);
        c.send(topic, "m");
        Case.check(Suite.admin.fetchAllTopicList().getTopicList().contains(topic), "not in the list of topics");
        Case.check(Suite.admin.fetchTopicsByCLuster(Suite.cluster).getTopicList().contains(topic), "not in the list of the cluster");
        Case.check(Suite.admin.getTopicClusterList(topic).contains(Suite.cluster), "clusters of the topic");
        Case.check(Suite.admin.getAllTopicConfig(Suite.broker, 5000).getTopicConfigTable().containsKey(topic), "not in the broker's table");
        var user = Suite.admin.getUserTopicConfig(Suite.broker, false, 5000).getTopicConfigTable();
        Case.check(user.containsKey(topic) && !user.containsKey("TBW102") && !user.containsKey("SCHEDULE_TOPIC_XXXX"), "user topics");
        var config = Suite.admin.examineTopicConfig(Suite.broker, topic);
        Case.same(4, config.getReadQueueNums(), "read queues");
        var route = Suite.admin.examineTopicRouteInfo(topic);
        Case.same(4, route.getQueueDatas().get(0).getWriteQueueNums(), "write queues in the route");
        Case.same(Suite.broker, route.getBrokerDatas().get(0).getBrokerAddrs().get(0L), "broker in the route");
        long sum = 0;
        for (var e : Suite.admin.examineTopicStats(topic).getOffsetTable().entrySet()) {
            sum += e.getValue().getMaxOffset() - e.getValue().getMinOffset();
            if (e.getValue().getMaxOffset() > 0) Case.check(Math.abs(e.getValue().getLastUpdateTimestamp() - System.currentTimeMillis()) < 20_000, "last update");
        }
        Case.same(1L, sum, "messages by topic statistics");
        config.setWriteQueueNums(6);
        config.setReadQueueNums(6);
        Suite.admin.createAndUpdateTopicConfig(Suite.broker, config);
        c.await("six queues in the route", 10, () -> Suite.admin.examineTopicRouteInfo(topic).getQueueDatas().get(0).getWriteQueueNums() == 6);
        Suite.admin.deleteTopicInBroker(new HashSet<>(Set.of(Suite.broker)), topic);
        Suite.admin.deleteTopicInNameServer(new HashSet<>(Set.of(Suite.namesrv)), Suite.cluster, topic);
        if (Suite.rocketmq) return; // the route may come back, its queues are deleted by and by, and a topic that comes back early finds them
        c.await("the route to be gone", 10, () -> {
            try { return Suite.admin.examineTopicRouteInfo(topic) == null; } catch (MQClientException e) { return e.getResponseCode() == 17; }
        });
        Case.check(!Suite.admin.getAllTopicConfig(Suite.broker, 5000).getTopicConfigTable().containsKey(topic), "still in the broker's table");
        c.topic(topic, 2, false);
        Case.same(0L, Suite.reader.maxOffset(Case.queues(topic).get(0)) + Suite.reader.maxOffset(Case.queues(topic).get(1)), "offsets of the topic that came back");
    }

    static void groups(Case c) throws Exception {
        String topic = c.topic(2), group = c.group(3);
        var g = Suite.admin.examineSubscriptionGroupConfig(Suite.broker, group);
        Case.same(3, g.getRetryMaxTimes(), "retries");
        g.setRetryMaxTimes(5);
        g.setConsumeBroadcastEnable(false);
        Suite.admin.createAndUpdateSubscriptionGroupConfig(Suite.broker, g);
        var table = Suite.admin.getAllSubscriptionGroup(Suite.broker, 5000).getSubscriptionGroupTable();
        Case.same(5, table.get(group).getRetryMaxTimes(), "retries afterwards");
        Case.check(!table.get(group).isConsumeBroadcastEnable(), "broadcast afterwards");
        Case.check(Suite.admin.getUserSubscriptionGroup(Suite.broker, 5000).getSubscriptionGroupTable().containsKey(group), "user groups");
        for (int i = 0; i < 10; i++) c.send(topic, "m" + i);
        Case.Got got = c.consume(group, topic, "*");
        c.await("ten messages", 15, () -> got.size() == 10);
        c.await("the lag to be 0", 15, () -> { var s = Suite.admin.examineConsumeStats(group, topic); return s.computeTotalDiff() == 0 && s.getOffsetTable().size() >= 2; });
        Case.check(Suite.admin.queryTopicConsumeByWho(topic).getGroupList().contains(group), "who consumes the topic");
        // switched off it gets nothing
        g = Suite.admin.examineSubscriptionGroupConfig(Suite.broker, group);
        g.setConsumeEnable(false);
        Suite.admin.createAndUpdateSubscriptionGroupConfig(Suite.broker, g);
        Thread.sleep(1000);
        c.send(topic, "parked pulls may carry this");
        c.send(topic, "and this");
        Thread.sleep(1500);
        int seen = got.size();
        for (int i = 0; i < 5; i++) c.send(topic, "off" + i);
        Thread.sleep(1500);
        Case.same(seen, got.size(), "messages for a group that is switched off");
        g.setConsumeEnable(true);
        Suite.admin.createAndUpdateSubscriptionGroupConfig(Suite.broker, g);
        c.await("the rest", 15, () -> got.bodies().contains("off4"));
        String gone = c.group(1);
        Suite.admin.deleteSubscriptionGroup(Suite.broker, gone, true);
        if (!Suite.rocketmq) // RocketMQ makes it anew in the same request
            Case.check(!Suite.admin.getAllSubscriptionGroup(Suite.broker, 5000).getSubscriptionGroupTable().containsKey(gone), "a deleted group is still there");
    }

    /** Who is connected. */
    static void clients(Case c) throws Exception {
        String topic = c.topic(2), group = c.group();
        DefaultMQPushConsumer k = c.consumer(group, topic, "a || b");
        k.registerMessageListener(new Case.Got());
        k.start();
        DefaultMQProducer p = c.producer();
        p.start();
        Case.sent(p.send(new Message(topic, Case.bytes("m")))); // heartbeats go to brokers of known topics
        k.getDefaultMQPushConsumerImpl().getmQClientFactory().sendHeartbeatToAllBrokerWithLock();
        p.getDefaultMQProducerImpl().getMqClientFactory().sendHeartbeatToAllBrokerWithLock();
        var info = Suite.admin.examineConsumerConnectionInfo(group);
        Case.same(1, info.getConnectionSet().size(), "connections of the group");
        var con = info.getConnectionSet().iterator().next();
        Case.same(k.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId(), con.getClientId(), "client id");
        Case.same("JAVA", con.getLanguage().name(), "language");
        Case.same(org.apache.rocketmq.common.MQVersion.CURRENT_VERSION, con.getVersion(), "version");
        Case.check(con.getClientAddr().startsWith("127.0.0.1:"), "address " + con.getClientAddr());
        Case.same("a || b", info.getSubscriptionTable().get(topic).getSubString(), "subscription");
        Case.same("CLUSTERING", info.getMessageModel().name(), "model");
        Case.same("CONSUME_PASSIVELY", info.getConsumeType().name(), "type");
        Case.same("CONSUME_FROM_FIRST_OFFSET", info.getConsumeFromWhere().name(), "from where");
        var producers = Suite.admin.examineProducerConnectionInfo(p.getProducerGroup(), topic);
        Case.same(1, producers.getConnectionSet().size(), "connections of the producer group");
        Case.check(Suite.admin.getAllProducerInfo(Suite.broker).getData().containsKey(p.getProducerGroup()), "producer group in the list of all");
        k.shutdown();
        p.shutdown();
        c.await("the consumer to be gone", 10, () -> {
            try { return Suite.admin.examineConsumerConnectionInfo(group).getConnectionSet().isEmpty(); } catch (MQBrokerException e) { return e.getResponseCode() == 206; } catch (MQClientException e) { return true; }
        });
        c.await("the producer to be gone", 10, () -> {
            try { return Suite.admin.examineProducerConnectionInfo(p.getProducerGroup(), topic).getConnectionSet().isEmpty(); } catch (Exception e) { return true; }
        });
    }

    /** What a running consumer tells of itself, asked through the broker. */
    static void running(Case c) throws Exception {
        String topic = c.topic(2), group = c.group();
        Case.Got got = new Case.Got();
        DefaultMQPushConsumer k = c.consumer(group, topic, "*");
        k.registerMessageListener(got);
        k.start();
        String id = k.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId();
        for (int i = 0; i < 6; i++) c.send(topic, "m" + i);
        c.await("messages", 15, () -> got.size() == 6);
        var info = Suite.admin.getConsumerRunningInfo(group, id, false);
        Case.check(info.getMqTable().size() >= 2, "queues of the consumer: " + info.getMqTable());
        Case.same("CONSUME_PASSIVELY", String.valueOf(info.getProperties().get("PROP_CONSUME_TYPE")), "type");
        Case.check(info.getSubscriptionSet().stream().anyMatch(s -> s.getTopic().equals(topic)), "subscriptions");
        Case.check(info.getStatusTable().containsKey(topic), "status table");
        Case.check(info.formatString().contains(topic), "formatted");
        Case.check(Suite.admin.getConsumerRunningInfo(group, id, true).getJstack().contains("ConsumeMessageThread"), "stack traces");
        c.await("positions by consumer status", 10, () -> {
            Map<String, Map<MessageQueue, Long>> status = Suite.admin.getConsumeStatus(topic, group, "");
            return status.containsKey(id) && status.get(id).values().stream().mapToLong(Long::longValue).sum() == 6;
        });
        Exception e = Case.refused(Exception.class, () -> Suite.admin.getConsumerRunningInfo(group, "nobody@1", false), "running info of a client that is not there");
        c.note = e.getMessage() == null ? "" : Case.cut(e.getMessage().replace('\n', ' ').replaceAll("BROKER: .*", ""));
        c.note = "";
    }

    /** One message handed to one consumer by the operator. */
    static void directly(Case c) throws Exception {
        String topic = c.topic(1), group = c.group();
        Case.Got got = new Case.Got();
        DefaultMQPushConsumer k = c.consumer(group, topic, "*");
        k.registerMessageListener((MessageListenerConcurrently) (msgs, x) -> {
            for (MessageExt m : msgs) got.add(m);
            if (got.times("bad") > 1) throw new IllegalStateException("on purpose");
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        k.start();
        SendResult good = c.send(topic, "good"), bad = c.send(topic, "bad");
        c.await("messages", 15, () -> got.size() == 2);
        String id = k.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId();
        var r = Suite.admin.consumeMessageDirectly(group, id, topic, good.getMsgId());
        Case.same("CR_SUCCESS", r.getConsumeResult().name(), "result: " + r);
        Case.same(2, got.times("good"), "deliveries of the message");
        r = Suite.admin.consumeMessageDirectly(group, id, topic, bad.getMsgId());
        Case.same("CR_THROW_EXCEPTION", r.getConsumeResult().name(), "result of a listener that throws: " + r);
        Case.check(r.getRemark().contains("on purpose"), "remark: " + r.getRemark());
    }

    /** Offsets are set while consumers run; they obey within seconds. */
    static void reset(Case c) throws Exception {
        String topic = c.topic(4), group = c.group();
        for (int i = 0; i < 20; i++) c.send(topic, "old" + i);
        Thread.sleep(50);
        long between = System.currentTimeMillis();
        Thread.sleep(50);
        for (int i = 0; i < 20; i++) c.send(topic, "new" + i);
        Case.Got a = new Case.Got(), b = new Case.Got();
        for (Case.Got g : List.of(a, b)) {
            DefaultMQPushConsumer k = c.consumer(group, topic, "*");
            k.registerMessageListener(g);
            k.start();
        }
        c.await("all messages", 30, () -> a.size() + b.size() >= 40);
        c.await("both to have queues", 30, () -> Suite.admin.examineConsumerConnectionInfo(group).getConnectionSet().size() == 2);
        Thread.sleep(6000); // progress is told every 5 s
        a.all.clear();
        b.all.clear();
        long at = System.currentTimeMillis();
        Map<MessageQueue, Long> to = Suite.admin.resetOffsetByTimestamp(topic, group, between, true);
        Case.same(4, to.size(), "queues reset");
        Set<String> want = new HashSet<>();
        for (int i = 0; i < 20; i++) want.add("new" + i);
        Set<String> missing = new TreeSet<>(want);
        try {
            c.await("the messages after the time again", 20, () -> { missing.removeAll(a.list()); missing.removeAll(b.list()); return missing.isEmpty(); });
        } catch (Case.Wrong w) {
            if (Suite.rocketmq) { c.note = "not obeyed by all: a pull parked by the former owner of a queue spends the reset there"; return; }
            throw new Case.Wrong(w.getMessage() + ": " + missing + " are missing, reset to " + to.values() + ", now " + Suite.admin.examineConsumeStats(group, topic).getOffsetTable().values().stream().map(o -> o.getConsumerOffset() + "/" + o.getBrokerOffset()).toList());
        }
        long took = System.currentTimeMillis() - at;
        long limit = MQVersion.CURRENT_VERSION < 432 ? 15_000 : 5000; // older clients wait for 10 s when they are told
        if (!Suite.rocketmq) Case.check(took < limit, "took " + took + " ms");
        Thread.sleep(500);
        for (Case.Got g : List.of(a, b)) for (String s : g.list()) Case.check(s.startsWith("new"), s + " came again, too");
        c.note = "obeyed after " + took + " ms";
    }

    /** Without a running consumer the next one begins there. */
    static void resetOffline(Case c) throws Exception {
        String topic = c.topic(2), group = c.group();
        for (int i = 0; i < 10; i++) c.send(topic, "m" + i);
        Case.Got got = new Case.Got();
        DefaultMQPushConsumer k = c.consumer(group, topic, "*");
        k.registerMessageListener(got);
        k.start();
        c.await("ten messages", 15, () -> got.size() == 10);
        Thread.sleep(300); // what the listener has done is not yet what the client notes as done
        k.shutdown();
        c.await("the offsets", 10, () -> Case.done(group, topic));
        List<?> done = Suite.admin.resetOffsetByTimestampOld(group, topic, System.currentTimeMillis() - 3_600_000, true);
        Case.same(2, done.size(), "queues set back");
        c.exactly(c.consume(group, topic, "*"), got.bodies(), 20);
        MessageQueue q = Case.queues(topic).get(0);
        String other = c.group(16);
        Suite.admin.updateConsumeOffset(Suite.broker, other, q, 1);
        if (Suite.rocketmq) return; // it refuses statistics of groups without a retry topic
        var o = Suite.admin.examineConsumeStats(other, topic).getOffsetTable().get(q);
        Case.check(o != null && o.getConsumerOffset() == 1, "offset set by hand: " + o);
    }

    static void cloneOffsets(Case c) throws Exception {
        String topic = c.topic(2), from = c.group(), to = c.group(16);
        for (int i = 0; i < 10; i++) c.send(topic, "m" + i);
        Case.Got got = new Case.Got();
        DefaultMQPushConsumer k = c.consumer(from, topic, "*");
        k.registerMessageListener(got);
        k.start();
        c.await("ten messages", 15, () -> got.size() == 10);
        Thread.sleep(300); // what the listener has done is not yet what the client notes as done
        k.shutdown();
        c.await("the offsets", 10, () -> Case.done(from, topic));
        Suite.admin.cloneGroupOffset(from, to, topic, true);
        if (!Suite.rocketmq) for (MessageQueue q : Case.queues(topic)) // it refuses statistics of groups without a retry topic
            Case.same(Suite.reader.maxOffset(q), Suite.admin.examineConsumeStats(to, topic).getOffsetTable().get(q).getConsumerOffset(), "cloned offset of " + q);
        c.send(topic, "after");
        c.exactly(c.consume(to, topic, "*"), List.of("after"), 15);
    }

    static void cluster(Case c) throws Exception {
        var info = Suite.admin.examineBrokerClusterInfo();
        Case.check(info.getClusterAddrTable().get(Suite.cluster).contains(Suite.brokerName), "the broker in its cluster");
        var runtime = Suite.admin.fetchBrokerRuntimeStats(Suite.broker).getTable();
        for (String key : List.of("bootTimestamp", "brokerVersionDesc", "putTps", "getTransferredTps", "msgPutTotalTodayNow", "commitLogDiskRatio", "runtime"))
            Case.check(runtime.containsKey(key), "runtime info has no " + key);
        Properties config = Suite.admin.getBrokerConfig(Suite.broker);
        Case.same(Suite.brokerName, config.getProperty("brokerName"), "brokerName in the configuration");
        Case.check(config.containsKey("maxMessageSize"), "maxMessageSize in the configuration");
        Suite.admin.fetchConsumeStatsInBroker(Suite.broker, false, 5000);
    }

    static void nameServer(Case c) throws Exception {
        String ns = c.unique("ns");
        Suite.admin.createAndUpdateKvConfig(ns, "key", "värde");
        Case.same("värde", Suite.admin.getKVConfig(ns, "key"), "value");
        Case.same(Map.of("key", "värde"), Suite.admin.getKVListByNamespace(ns).getTable(), "namespace");
        Suite.admin.deleteKvConfig(ns, "key");
        Case.refused(MQClientException.class, () -> Suite.admin.getKVConfig(ns, "key"), "a deleted value");
        Case.check(!Suite.admin.getNameServerConfig(null).isEmpty(), "configuration");
        Case.same(List.of(Suite.namesrv), Suite.admin.getNameServerAddressList(), "addresses");
    }

    /** Who has consumed a message. */
    static void track(Case c) throws Exception {
        String topic = c.topic(1), done = c.group(), none = c.group(16);
        SendResult r = c.send(topic, "tracked");
        Case.Got got = c.consume(done, topic, "*");
        c.await("the message", 15, () -> got.size() == 1);
        c.await("the lag to be 0", 15, () -> Case.done(done, topic));
        MessageExt m = Suite.admin.viewMessage(topic, r.getMsgId());
        var tracks = Suite.admin.messageTrackDetail(m);
        Case.check(tracks.stream().anyMatch(t -> t.getConsumerGroup().equals(done) && t.getTrackType().name().equals("CONSUMED")), "tracks: " + tracks);
        Suite.admin.queryConsumeTimeSpan(topic, done);
    }

    /** Numbers by minute. */
    static void stats(Case c) throws Exception {
        String topic = c.topic(1);
        c.await("statistics of the topic", 50, () -> {
            c.send(topic, "m");
            Thread.sleep(500);
            try { return Suite.admin.viewBrokerStatsData(Suite.broker, "TOPIC_PUT_NUMS", topic).getStatsMinute().getSum() > 0; } catch (Exception e) { return false; }
        });
    }

    static void consumeQueue(Case c) throws Exception {
        String topic = c.topic(1);
        for (int i = 0; i < 5; i++) c.send(topic, "tag", "k", "m" + i);
        var r = Suite.admin.queryConsumeQueue(Suite.broker, topic, 0, 1, 3, null);
        Case.same(3, r.getQueueData().size(), "entries");
        Case.same((long) "tag".hashCode(), r.getQueueData().get(0).getTagsCode(), "tags code");
        Case.same(5L, r.getMaxQueueIndex(), "end of the queue");
    }

    /** A broker that must not be written: producers leave it, and come back. */
    static void writePermission(Case c) throws Exception {
        String topic = c.topic(1);
        int n = Suite.admin.wipeWritePermOfBroker(Suite.namesrv, Suite.brokerName);
        try {
            Case.check(n > 0, "topics changed: " + n);
            Case.same(4, Suite.admin.examineTopicRouteInfo(topic).getQueueDatas().get(0).getPerm(), "permission in the route");
            DefaultMQProducer p = c.producer();
            p.start();
            Case.refused(MQClientException.class, () -> p.send(new Message(topic, Case.bytes("m"))), "a send without a broker to write to");
        } finally {
            Suite.admin.addWritePermOfBroker(Suite.namesrv, Suite.brokerName);
        }
        Case.same(6, Suite.admin.examineTopicRouteInfo(topic).getQueueDatas().get(0).getPerm(), "permission afterwards");
        DefaultMQProducer p = c.producer();
        p.start();
        Case.sent(p.send(new Message(topic, Case.bytes("m"))));
    }

    private Admin() {}
}
