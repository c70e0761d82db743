import java.util.*;
import java.util.concurrent.*;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.client.exception.*;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.*;

/** Requests by message, answered by message. */
final class Replying {
    static void cases(List<Suite.Row> rows) {
        rows.add(new Suite.Row("reply.sync", 30, Replying::sync));
        rows.add(new Suite.Row("reply.async", 30, Replying::async));
        rows.add(new Suite.Row("reply.late", 30, Replying::late));
    }

    /** A consumer that answers "re: " and the body, after a pause if the body names one. */
    static void answering(Case c, String topic) throws Exception {
        DefaultMQProducer replier = c.producer();
        replier.start();
        DefaultMQPushConsumer k = c.consumer(c.group(), topic, "*");
        k.registerMessageListener((MessageListenerConcurrently) (msgs, x) -> {
            for (MessageExt m : msgs)
                try {
                    if (Case.text(m).startsWith("slow")) Thread.sleep(2500);
                    if (Case.text(m).startsWith("never")) continue;
                    Case.check(MessageUtil.getReplyToClient(m) != null, "no client to reply to");
                    Case.sent(replier.send(MessageUtil.createReplyMessage(m, Case.bytes("re: " + Case.text(m)))));
                } catch (Exception e) { c.note = "a reply failed: " + e; }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        k.start();
        c.assigned(k, topic, Case.queues(topic).size());
    }

    static DefaultMQProducer requester(Case c) throws Exception {
        DefaultMQProducer p = c.producer();
        p.start();
        return p;
    }

    static void sync(Case c) throws Exception {
        String topic = c.topic(2);
        answering(c, topic);
        DefaultMQProducer a = requester(c), b = requester(c);
        for (int i = 0; i < 5; i++) {
            Case.same("re: a" + i, Case.text(a.request(new Message(topic, Case.bytes("a" + i)), 10_000)), "answer");
            Case.same("re: b" + i, Case.text(b.request(new Message(topic, Case.bytes("b" + i)), (l, m, arg) -> l.get((Integer) arg), i % 2, 10_000)), "answer by selector");
        }
        Case.same("re: q", Case.text(a.request(new Message(topic, Case.bytes("q")), Case.queues(topic).get(1), 10_000)), "answer by queue");
        String large = "x".repeat(200_000);
        Case.same("re: " + large, Case.text(a.request(new Message(topic, Case.bytes(large)), 10_000)), "large answer");
        long began = System.nanoTime();
        a.request(new Message(topic, Case.bytes("quick")), 10_000);
        c.note = (System.nanoTime() - began) / 1_000_000 + " ms there and back";
    }

    static void async(Case c) throws Exception {
        String topic = c.topic(4);
        answering(c, topic);
        DefaultMQProducer[] ps = {requester(c), requester(c)};
        Map<String, CompletableFuture<String>> answers = new LinkedHashMap<>();
        for (int i = 0; i < 40; i++) {
            String body = "m" + i;
            CompletableFuture<String> f = new CompletableFuture<>();
            answers.put(body, f);
            ps[i % 2].request(new Message(topic, Case.bytes(body)), new RequestCallback() {
                @Override public void onSuccess(Message m) { if (m != null) f.complete(Case.text(m)); } // 5.x clients call once with nothing when the request is sent
                @Override public void onException(Throwable e) { f.completeExceptionally(e); }
            }, 10_000);
        }
        for (var e : answers.entrySet()) Case.same("re: " + e.getKey(), e.getValue().get(15, TimeUnit.SECONDS), "answer");
    }

    /** A time-out is told, and an answer that comes late disturbs nobody. */
    static void late(Case c) throws Exception {
        String topic = c.topic(2);
        answering(c, topic);
        DefaultMQProducer p = requester(c);
        Case.same("re: first", Case.text(p.request(new Message(topic, Case.bytes("first")), 10_000)), "answer");
        Case.refused(RequestTimeoutException.class, () -> p.request(new Message(topic, Case.bytes("slow")), 1000), "a slow answer");
        CompletableFuture<Throwable> f = new CompletableFuture<>();
        p.request(new Message(topic, Case.bytes("never")), new RequestCallback() {
            @Override public void onSuccess(Message m) { if (m != null) f.complete(new Case.Wrong("success: " + m)); } // see above
            @Override public void onException(Throwable e) { f.complete(e); }
        }, 1500);
        Thread.sleep(2000); // the slow answer comes meanwhile
        Case.check(f.get(10, TimeUnit.SECONDS) instanceof RequestTimeoutException, "the callback got " + f.get());
        Case.same("re: last", Case.text(p.request(new Message(topic, Case.bytes("last")), 10_000)), "answer afterwards");
    }

    private Replying() {}
}
