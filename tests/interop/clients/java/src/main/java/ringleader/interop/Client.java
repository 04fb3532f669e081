package ringleader.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.concurrent.LinkedBlockingQueue;

/** A client of Kafka on a thread of its own, which carries out one command after the other. */
abstract class Client implements Runnable {
    final String name;
    private final JsonNode opening;
    private final LinkedBlockingQueue<JsonNode> commands = new LinkedBlockingQueue<>();
    private boolean open = true;

    Client(String name, JsonNode opening) {
        this.name = name;
        this.opening = opening;
    }

    final void start() {
        Thread thread = new Thread(this, name);
        thread.setDaemon(true);
        thread.start();
    }

    final void tell(JsonNode command) {
        commands.add(command);
    }

    @Override
    public final void run() {
        answer(opening);
        while (open) {
            try {
                JsonNode command = next(commands);
                if (command != null) {
                    answer(command);
                }
            } catch (Exception error) {
                // What an application sees thrown from poll(). It would end here; so does this client.
                Clients.emit(failure("failed", error));
                open = false;
            }
        }
    }

    private void answer(JsonNode command) {
        ObjectNode event;
        try {
            event = Clients.event("done", name);
            event.set("result", carryOut(command));
        } catch (Exception error) {
            event = failure("error", error);
        }
        if (command.get("op").asText().equals("close")) {
            open = false;
        }
        Clients.emit(event.put("id", command.get("id").asInt()));
    }

    private ObjectNode failure(String kind, Exception error) {
        Throwable cause = error instanceof java.util.concurrent.ExecutionException ? error.getCause() : error;
        return Clients.event(kind, name)
                .put("error", cause.getClass().getSimpleName())
                .put("message", String.valueOf(cause.getMessage()));
    }

    /** The next command, or null after doing what there is to do without one. */
    abstract JsonNode next(LinkedBlockingQueue<JsonNode> commands) throws Exception;

    /** The result of a command. */
    abstract JsonNode carryOut(JsonNode command) throws Exception;
}
