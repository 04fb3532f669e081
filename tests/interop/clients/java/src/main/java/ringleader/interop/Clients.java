package ringleader.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;

/**
 * Consumers and producers on a line: each line of standard input is a command in JSON, each line of standard
 * output an event in JSON. It ends, and closes nobody properly, when its input ends.
 *
 * <p>A command has "op", "id" and "name". "consumer", "producer", "admin" and "tools" open a client of that name; every
 * other command goes to the client of that name and is carried out on its thread. Every command is answered by one
 * event with its id: "done" with the result, or "error" with the class and text of the exception. A client
 * also tells what happens to it, in events without an id.
 */
public final class Clients {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private final Map<String, Client> clients = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        Clients all = new Clients();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            all.take(JSON.readTree(line));
        }
        Runtime.getRuntime().halt(0);
    }

    private void take(JsonNode command) {
        String name = command.get("name").asText();
        switch (command.get("op").asText()) {
            case "consumer" -> clients.put(name, new ConsumerClient(name, command));
            case "producer" -> clients.put(name, new ProducerClient(name, command, this));
            case "admin" -> clients.put(name, new AdminClient(name, command));
            case "tools" -> clients.put(name, new ToolClient(name, command));
            default -> clients.get(name).tell(command);
        }
    }

    ConsumerClient consumer(String name) {
        return (ConsumerClient) clients.get(name);
    }

    static ObjectNode event(String kind, String name) {
        return JSON.createObjectNode().put("event", kind).put("name", name);
    }

    static void emit(ObjectNode event) {
        String line = event.toString();
        synchronized (OUT) {
            OUT.println(line);
        }
    }

    static ArrayNode places(Collection<TopicPartition> partitions) {
        ArrayNode all = JSON.createArrayNode();
        partitions.stream()
                .sorted((one, other) -> one.toString().compareTo(other.toString()))
                .forEach(one -> all.addArray().add(one.topic()).add(one.partition()));
        return all;
    }

    static TopicPartition place(JsonNode pair) {
        return new TopicPartition(pair.get(0).asText(), pair.get(1).asInt());
    }

    static Map<String, Object> config(JsonNode command) {
        Map<String, Object> config = new HashMap<>();
        command.get("config").properties().forEach(one -> config.put(one.getKey(), one.getValue().asText()));
        return config;
    }
}
