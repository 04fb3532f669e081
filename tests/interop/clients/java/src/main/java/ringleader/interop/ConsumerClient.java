package ringleader.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A consumer in its group, which polls without a pause. It tells "assigned", "revoked" and "lost" with the
 * partitions of that change and all that it then owns, and "records". With "commitOnRevoke" it commits its
 * positions, at once and waiting, when partitions are revoked, and tells "committed".
 */
final class ConsumerClient extends Client implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(20);

    private final boolean commitOnRevoke;
    private KafkaConsumer<String, String> consumer;
    private boolean subscribed;
    private volatile ConsumerGroupMetadata metadata;

    ConsumerClient(String name, JsonNode opening) {
        super(name, opening);
        commitOnRevoke = opening.path("commitOnRevoke").asBoolean();
        start();
    }

    /** As it was after the last poll; from any thread. */
    ConsumerGroupMetadata metadata() {
        return metadata;
    }

    @Override
    JsonNode next(LinkedBlockingQueue<JsonNode> commands) throws InterruptedException {
        JsonNode command = subscribed ? commands.poll() : commands.take();
        if (command == null) {
            ConsumerRecords<String, String> records = consumer.poll(POLL);
            metadata = consumer.groupMetadata();
            if (!records.isEmpty()) {
                tellOf(records);
            }
        }
        return command;
    }

    private void tellOf(ConsumerRecords<String, String> records) {
        ObjectNode event = Clients.event("records", name);
        ArrayNode all = event.putArray("records");
        for (ConsumerRecord<String, String> one : records) {
            all.addArray().add(one.topic()).add(one.partition()).add(one.offset()).add(one.value());
        }
        Clients.emit(event);
    }

    @Override
    JsonNode carryOut(JsonNode command) throws InterruptedException {
        switch (command.get("op").asText()) {
            case "consumer" -> {
                consumer = new KafkaConsumer<>(
                        Clients.config(command), new StringDeserializer(), new StringDeserializer());
                subscribe(command);
                return null;
            }
            case "subscribe" -> {
                subscribe(command);
                return null;
            }
            case "busy" -> { // an application that works on its records for so long
                Thread.sleep(Math.round(1000 * command.get("seconds").asDouble()));
                return null;
            }
            case "commit" -> {
                if (command.has("offsets")) {
                    consumer.commitSync(offsets(command.get("offsets")));
                } else {
                    consumer.commitSync();
                }
                return null;
            }
            case "committed" -> {
                return committed(command.get("partitions"));
            }
            case "seek" -> {
                consumer.seek(Clients.place(command.get("to")), command.get("to").get(2).asLong());
                return null;
            }
            case "rebalance" -> {
                consumer.enforceRebalance(command.get("reason").asText());
                return null;
            }
            case "metadata" -> {
                ConsumerGroupMetadata now = consumer.groupMetadata();
                return Clients.JSON.createObjectNode()
                        .put("generation", now.generationId())
                        .put("member", now.memberId());
            }
            case "close" -> {
                consumer.close(CloseOptions.groupMembershipOperation(
                        CloseOptions.GroupMembershipOperation.valueOf(command.get("how").asText())));
                return null;
            }
            default -> throw new IllegalArgumentException(command.toString());
        }
    }

    private void subscribe(JsonNode command) {
        List<String> topics = new ArrayList<>();
        command.get("topics").forEach(one -> topics.add(one.asText()));
        consumer.subscribe(topics, this);
        subscribed = true;
    }

    static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode triples) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        triples.forEach(one -> offsets.put(Clients.place(one), new OffsetAndMetadata(one.get(2).asLong())));
        return offsets;
    }

    private ArrayNode committed(JsonNode partitions) {
        Set<TopicPartition> asked = new java.util.LinkedHashSet<>();
        partitions.forEach(one -> asked.add(Clients.place(one)));
        Map<TopicPartition, OffsetAndMetadata> found = consumer.committed(asked);
        ArrayNode all = Clients.JSON.createArrayNode();
        for (TopicPartition one : asked) {
            OffsetAndMetadata offset = found.get(one);
            all.add(offset == null ? null : offset.offset());
        }
        return all;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        changed("assigned", partitions, consumer.assignment());
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        if (commitOnRevoke) {
            ObjectNode event = Clients.event("committed", name);
            try {
                Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
                partitions.forEach(one -> positions.put(one, new OffsetAndMetadata(consumer.position(one))));
                consumer.commitSync(positions);
                event.put("count", positions.size());
            } catch (RuntimeException error) {
                event.put("error", error.getClass().getSimpleName());
            }
            Clients.emit(event);
        }
        Set<TopicPartition> kept = without(partitions);
        changed("revoked", partitions, kept);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        changed("lost", partitions, without(partitions));
    }

    private Set<TopicPartition> without(Collection<TopicPartition> partitions) {
        Set<TopicPartition> kept = new TreeSet<>((one, other) -> one.toString().compareTo(other.toString()));
        kept.addAll(consumer.assignment());
        kept.removeAll(partitions);
        return kept;
    }

    private void changed(String kind, Collection<TopicPartition> partitions, Collection<TopicPartition> owned) {
        ConsumerGroupMetadata now = consumer.groupMetadata();
        ObjectNode event = Clients.event(kind, name)
                .put("generation", now.generationId())
                .put("member", now.memberId());
        event.set("partitions", Clients.places(partitions));
        event.set("owned", Clients.places(owned));
        Clients.emit(event);
    }
}
