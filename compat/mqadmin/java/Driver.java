import java.io.*;
import java.nio.charset.StandardCharsets;
import java.security.Permission;
import java.util.*;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Runs sub-commands of the real mqadmin, one after the other, in one process, and clients of version 5.5.0 beside them
 * (see Clients). Each line on standard input is one request, words separated by tabs:
 *
 * admin MILLIS ARGS...   one command; it is stopped after MILLIS
 * VERB ...               for Clients
 *
 * The answer is a line "EXIT STOPPED OUT ERR", the latter two being lengths, and the bytes of both outputs. EXIT is what
 * the process would have ended with; STOPPED is 1 when the time was over.
 */
public class Driver {
    /** What System.exit becomes: mqadmin ends the process when it cannot read its arguments. */
    static final class Exit extends Error {
        final int status;

        Exit(int status) {
            super(null, null, false, false);
            this.status = status;
        }
    }

    /** Where a command and the threads it starts write to. */
    static final class Sink {
        final ByteArrayOutputStream out = new ByteArrayOutputStream(), err = new ByteArrayOutputStream();
        volatile boolean closed;
        volatile int exit;
    }

    static final InheritableThreadLocal<Sink> sinks = new InheritableThreadLocal<>();

    /** Sends what is printed to the sink of the printing thread; what a stopped command still prints is lost. */
    static final class Router extends OutputStream {
        final boolean err;
        final OutputStream elsewhere;

        Router(boolean err, OutputStream elsewhere) {
            this.err = err;
            this.elsewhere = elsewhere;
        }

        @Override public void write(int b) throws IOException {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override public void write(byte[] b, int off, int len) throws IOException {
            Sink s = sinks.get();
            if (s == null) {
                elsewhere.write(b, off, len);
                return;
            }
            if (s.closed) return;
            ByteArrayOutputStream to = err ? s.err : s.out;
            synchronized (to) {
                to.write(b, off, len);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        DataOutputStream answers = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
        OutputStream log = System.err;
        System.setProperty("rocketmq.namesrv.addr", args[0]);
        System.setSecurityManager(new SecurityManager() {
            @Override public void checkPermission(Permission p) { }

            @Override public void checkPermission(Permission p, Object context) { }

            @Override public void checkExit(int status) {
                if (sinks.get() != null) throw new Exit(status);
            }
        });
        System.setOut(new PrintStream(new Router(false, log), true, "UTF-8"));
        System.setErr(new PrintStream(new Router(true, log), true, "UTF-8"));

        Clients clients = new Clients(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null;) {
            String[] w = line.split("\t", -1);
            if (w[0].equals("admin")) {
                Sink s = new Sink();
                boolean ended = admin(s, Long.parseLong(w[1]), Arrays.copyOfRange(w, 2, w.length), args[0]);
                answer(answers, s.exit, !ended, copy(s.out), copy(s.err));
            } else {
                try {
                    answer(answers, 0, false, clients.handle(w).getBytes(StandardCharsets.UTF_8), new byte[0]);
                } catch (Throwable e) {
                    answer(answers, 1, false, new byte[0], e.toString().getBytes(StandardCharsets.UTF_8));
                }
            }
        }
        clients.stopAll();
        Runtime.getRuntime().halt(0);
    }

    /** Runs one command; false if it had to be stopped. */
    static boolean admin(Sink s, long millis, String[] args, String namesrv) throws Exception {
        ThreadGroup group = new ThreadGroup("mqadmin");
        Thread t = new Thread(group, () -> {
            sinks.set(s);
            try {
                MQAdminStartup.main0(args, null);
            } catch (Exit e) {
                s.exit = e.status;
            } catch (Throwable e) {
                e.printStackTrace();
                s.exit = 1;
            }
        }, "mqadmin");
        t.setDaemon(true);
        t.start();
        for (long end = System.currentTimeMillis() + millis; t.isAlive() && System.currentTimeMillis() < end; ) {
            t.join(Math.min(50, millis));
            if (t.isAlive()) hurry(group, t);
        }
        boolean ended = !t.isAlive();
        if (!ended) {
            s.closed = true;
            for (int i = 0; i < 100 && t.isAlive(); i++) { // some swallow an interrupt and go on
                t.interrupt();
                t.join(50);
                if (t.isAlive()) hurry(group, t);
            }
        }
        System.setProperty("rocketmq.namesrv.addr", namesrv);
        return ended;
    }

    /**
     * When the client shuts down it waits for a thread that polls for 3 s and that often misses its interrupt. One more
     * interrupt saves minutes over the whole matrix.
     */
    static void hurry(ThreadGroup group, Thread t) {
        boolean leaving = false;
        for (StackTraceElement e : t.getStackTrace()) {
            leaving |= e.getClassName().endsWith(".ServiceThread") && e.getMethodName().equals("shutdown");
        }
        if (!leaving) return;
        Thread[] all = new Thread[group.activeCount() + 8];
        for (int i = group.enumerate(all) - 1; i >= 0; i--) {
            if (all[i].getName().contains("NettyEventExecutor")) all[i].interrupt();
        }
    }

    static byte[] copy(ByteArrayOutputStream b) {
        synchronized (b) {
            return b.toByteArray();
        }
    }

    static void answer(DataOutputStream to, int exit, boolean stopped, byte[] out, byte[] err) throws IOException {
        to.write((exit + " " + (stopped ? 1 : 0) + " " + out.length + " " + err.length + "\n").getBytes(StandardCharsets.US_ASCII));
        to.write(out);
        to.write(err);
        to.flush();
    }
}
