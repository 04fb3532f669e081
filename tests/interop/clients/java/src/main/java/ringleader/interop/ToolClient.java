package ringleader.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command line tools, each run by its main method. A JVM that is warm runs one in a tenth of the time.
 * One at a time: what a tool prints is all that is printed meanwhile.
 */
final class ToolClient extends Client {
    /** Unwinds a tool's main method where it would end the JVM. */
    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    /** What a tool said up to its end, and its exit code. */
    private static final class Outcome {
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();
        private final ByteArrayOutputStream err = new ByteArrayOutputStream();
        private ObjectNode result;

        /** The first end counts: a tool that catches what unwinds it would end again, with an error. */
        void end(int code) {
            if (result == null) {
                result = Clients.JSON.createObjectNode()
                        .put("code", code)
                        .put("out", out.toString(StandardCharsets.UTF_8))
                        .put("err", err.toString(StandardCharsets.UTF_8));
            }
        }
    }

    ToolClient(String name, JsonNode opening) {
        super(name, opening);
        start();
    }

    @Override
    JsonNode next(LinkedBlockingQueue<JsonNode> commands) throws InterruptedException {
        return commands.take();
    }

    @Override
    JsonNode carryOut(JsonNode command) throws Exception {
        if (!command.get("op").asText().equals("tool")) {
            return null;
        }
        List<String> arguments = new ArrayList<>();
        command.get("arguments").forEach(one -> arguments.add(one.asText()));
        return run(command.get("main").asText(), arguments.toArray(new String[0])).result;
    }

    private static Outcome run(String main, String[] arguments) throws Exception {
        PrintStream usualOut = System.out;
        PrintStream usualErr = System.err;
        Outcome outcome = new Outcome();
        Exit.setExitProcedure((code, message) -> {
            outcome.end(code);
            throw new Ended();
        });
        System.setOut(new PrintStream(outcome.out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(outcome.err, true, StandardCharsets.UTF_8));
        try {
            Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) arguments);
            outcome.end(0);
        } catch (InvocationTargetException error) {
            if (!(error.getCause() instanceof Ended)) {
                throw error;
            }
        } finally {
            System.setOut(usualOut);
            System.setErr(usualErr);
            Exit.resetExitProcedure();
        }
        return outcome;
    }
}
