package ringleader.interop;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;

/** What an operator can do to a group for which there is no tool. */
final class AdminClient extends Client {
    private Admin admin;

    AdminClient(String name, JsonNode opening) {
        super(name, opening);
        start();
    }

    @Override
    JsonNode next(LinkedBlockingQueue<JsonNode> commands) throws InterruptedException {
        return commands.take();
    }

    @Override
    JsonNode carryOut(JsonNode command) throws Exception {
        switch (command.get("op").asText()) {
            case "admin" -> admin = Admin.create(Clients.config(command));
            case "remove" -> {
                MemberToRemove member = new MemberToRemove(command.get("instance").asText());
                RemoveMembersFromConsumerGroupOptions options =
                        new RemoveMembersFromConsumerGroupOptions(List.of(member));
                options.reason(command.get("reason").asText());
                String group = command.get("group").asText();
                admin.removeMembersFromConsumerGroup(group, options).memberResult(member).get();
            }
            case "close" -> admin.close();
            default -> throw new IllegalArgumentException(command.toString());
        }
        return null;
    }
}
