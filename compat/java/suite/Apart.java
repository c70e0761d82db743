import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.*;

/** Clients that die: they run in a process of their own. Arguments: name server, what, and what that needs. */
public final class Apart {
    public static void main(String[] args) throws Exception {
        switch (args[1]) {
            case "half":
                try {
                    half(args[0], args[2], args[3], List.of(args).subList(4, args.length));
                } catch (Throwable e) { // other threads would keep the process alive
                    e.printStackTrace(System.out);
                }
                Runtime.getRuntime().halt(4);
                break;
            case "orderly": orderly(args[0], args[2], args[3]); break;
            default: throw new IllegalArgumentException(args[1]);
        }
    }

    /** Sends half messages and dies within the local transaction of the last. */
    static void half(String namesrv, String group, String topic, List<String> bodies) throws Exception {
        TransactionMQProducer p = new TransactionMQProducer(group);
        p.setNamesrvAddr(namesrv);
        p.setSendMsgTimeout(10_000);
        p.setTransactionListener(new TransactionListener() {
            @Override public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
                if (Case.text(m).equals(bodies.get(bodies.size() - 1))) Runtime.getRuntime().halt(3);
                return LocalTransactionState.UNKNOW;
            }
            @Override public LocalTransactionState checkLocalTransaction(MessageExt m) { return LocalTransactionState.UNKNOW; }
        });
        p.start();
        for (String b : bodies) p.sendMessageInTransaction(new Message(topic, Case.bytes(b)), null);
    }

    /** Consumes in order, prints a line for each message (time, body) and never ends. */
    static void orderly(String namesrv, String group, String topic) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(namesrv);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(topic, "*");
        c.registerMessageListener((MessageListenerOrderly) (msgs, context) -> {
            for (MessageExt m : msgs) {
                System.out.println(System.currentTimeMillis() + " " + Case.text(m));
                System.out.flush();
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        c.start();
        Thread.sleep(600_000);
    }

    private Apart() {}
}
