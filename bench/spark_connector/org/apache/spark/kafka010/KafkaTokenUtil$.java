package org.apache.spark.kafka010;

import java.util.Map;
import org.apache.spark.SparkConf;
import scala.Option;

/** Stands in for the object of Spark's token provider: there are no delegation tokens. */
public final class KafkaTokenUtil$ {
    public static final KafkaTokenUtil$ MODULE$ = new KafkaTokenUtil$();

    private KafkaTokenUtil$() {}

    public boolean needTokenUpdate(Map<String, Object> settings, Option<?> clusterConfig) {
        return false;
    }

    @SuppressWarnings("unchecked")
    public <T> Option<T> findMatchingTokenClusterConfig(SparkConf conf, String bootstrapServers) {
        return Option.empty();
    }
}
