import java.util.*;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.client.trace.*;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.*;

/** Message trace, as clients write it and as queryMsgTraceById reads it. */
final class Tracing {
    static void cases(List<Suite.Row> rows) {
        rows.add(new Suite.Row("trace.default", 45, c -> trace(c, null)));
        rows.add(new Suite.Row("trace.owntopic", 45, c -> trace(c, c.topic(1))));
        rows.add(new Suite.Row("trace.transaction", 60, Tracing::transaction));
    }

    static void trace(Case c, String traceTopic) throws Exception {
        String topic = c.topic(2), group = c.group(), producerGroup = c.unique("p");
        DefaultMQProducer p = new DefaultMQProducer(producerGroup, null, true, traceTopic);
        p.setNamesrvAddr(Suite.namesrv);
        p.setSendMsgTimeout(10_000);
        p.start();
        c.after(p::shutdown);
        DefaultMQPushConsumer k = new DefaultMQPushConsumer(group, null, new AllocateMessageQueueAveragely(), true, traceTopic);
        k.setNamesrvAddr(Suite.namesrv);
        k.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        k.subscribe(topic, "*");
        Case.Got got = new Case.Got();
        k.registerMessageListener(got);
        k.start();
        c.after(k::shutdown);
        SendResult r = Case.sent(p.send(new Message(topic, "tag", "order-17", Case.bytes("traced"))));
        c.await("the message", 15, () -> got.size() == 1);
        String in = traceTopic == null ? "RMQ_SYS_TRACE_TOPIC" : traceTopic;
        List<TraceView> views = new ArrayList<>();
        c.await("the trace of " + r.getMsgId(), 25, () -> views(in, r.getMsgId(), views).containsAll(Set.of(producerGroup, group)));
        for (TraceView v : views) {
            if (v.getTopic().isEmpty()) continue; // the end of a consumption names the message only
            Case.same(topic, v.getTopic(), "topic of the trace");
            Case.same("order-17", v.getKeys(), "keys of the trace");
            Case.same("success", v.getStatus(), "status of the trace of " + v.getGroupName());
        }
        // by the message's key as well
        c.await("the trace by key", 10, () -> views(in, "order-17", new ArrayList<>()) != null);
    }

    /** Groups that the trace of a message names. */
    static Set<String> views(String traceTopic, String key, List<TraceView> into) {
        Set<String> groups = new HashSet<>();
        into.clear();
        try {
            for (MessageExt m : Suite.admin.queryMessage(traceTopic, key, 64, 0, System.currentTimeMillis() + 60_000).getMessageList())
                for (TraceView v : TraceView.decodeFromTraceTransData(key, m)) { into.add(v); groups.add(v.getGroupName()); }
        } catch (Exception e) { /* not there yet */ }
        return groups;
    }

    /** The end of a transaction is traced too. */
    static void transaction(Case c) throws Exception {
        String topic = c.topic(1), group = c.unique("p");
        TransactionMQProducer p = new TransactionMQProducer(null, group, null, true, null);
        p.setNamesrvAddr(Suite.namesrv);
        Transactions.Ledger l = new Transactions.Ledger();
        l.plan("tx", Transactions.COMMIT);
        p.setTransactionListener(l);
        p.start();
        c.after(p::shutdown);
        SendResult r = p.sendMessageInTransaction(new Message(topic, "tag", "k", Case.bytes("tx")), null);
        Set<String> types = new HashSet<>();
        c.await("both parts of the trace", 25, () -> {
            try {
                for (MessageExt m : Suite.admin.queryMessage("RMQ_SYS_TRACE_TOPIC", r.getMsgId(), 64, 0, System.currentTimeMillis() + 60_000).getMessageList())
                    for (TraceContext t : TraceDataEncoder.decoderFromTraceDataString(Case.text(m)))
                        if (t.getTraceBeans().get(0).getMsgId().equals(r.getMsgId())) types.add(t.getTraceType().name());
            } catch (Exception e) { return false; }
            return types.containsAll(Set.of("Pub", "EndTransaction"));
        });
    }

    private Tracing() {}
}
