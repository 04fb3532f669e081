package ringleader.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/** A producer, with a transactional id or without. It says nothing but the answers to its commands. */
final class ProducerClient extends Client {
    private final Clients all;
    private KafkaProducer<String, String> producer;

    ProducerClient(String name, JsonNode opening, Clients all) {
        super(name, opening);
        this.all = all;
        start();
    }

    @Override
    JsonNode next(LinkedBlockingQueue<JsonNode> commands) throws InterruptedException {
        return commands.take();
    }

    @Override
    JsonNode carryOut(JsonNode command) throws Exception {
        switch (command.get("op").asText()) {
            case "producer" -> producer = new KafkaProducer<>(
                    Clients.config(command), new StringSerializer(), new StringSerializer());
            case "init" -> producer.initTransactions();
            case "begin" -> producer.beginTransaction();
            case "send" -> {
                return send(command.get("records"));
            }
            case "offsets" -> producer.sendOffsetsToTransaction(
                    ConsumerClient.offsets(command.get("offsets")),
                    all.consumer(command.get("consumer").asText()).metadata());
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "close" -> producer.close();
            default -> throw new IllegalArgumentException(command.toString());
        }
        return null;
    }

    /** Records as [topic, partition or null, value]; the offset of each. */
    private ArrayNode send(JsonNode records) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode one : records) {
            Integer partition = one.get(1).isNull() ? null : one.get(1).asInt();
            sent.add(producer.send(new ProducerRecord<>(
                    one.get(0).asText(), partition, null, one.get(2).asText())));
        }
        producer.flush();
        ArrayNode offsets = Clients.JSON.createArrayNode();
        for (Future<RecordMetadata> one : sent) {
            RecordMetadata where = one.get();
            offsets.addArray().add(where.topic()).add(where.partition()).add(where.offset());
        }
        return offsets;
    }
}
