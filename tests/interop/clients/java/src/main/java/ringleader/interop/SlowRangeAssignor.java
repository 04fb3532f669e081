package ringleader.interop;

import java.util.Map;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;

/** The range assignor of an application that thinks for "slow.ms" milliseconds whenever it leads. */
public final class SlowRangeAssignor extends RangeAssignor implements Configurable {
    private long slowMs;

    @Override
    public void configure(Map<String, ?> config) {
        slowMs = Long.parseLong(String.valueOf(config.get("slow.ms")));
    }

    @Override
    public GroupAssignment assign(Cluster metadata, GroupSubscription subscriptions) {
        try {
            Thread.sleep(slowMs);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        return super.assign(metadata, subscriptions);
    }
}
