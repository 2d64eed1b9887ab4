"""Follows a node-state server and prints the rows of one node as they change: python3 consumer.py PROTO-DIRECTORY TARGET NODE"""
import collections, queue, sys, time
import grpc

directory, target, node_name = sys.argv[1:]
sys.path.append(directory)  # where grpcio-tools looks for .proto files
api, services = grpc.protos_and_services("turnout/node/v1/node.proto")


class Family:
    """What we hold of one family; it outlives the streams it comes over."""

    def __init__(self, number):
        self.number, self.instance, self.revision, self.rows = number, "", 0, {}

    def ask(self):
        return api.WatchRequest(ask=api.Ask(family=self.number, instance=self.instance, revision=self.revision))

    def take(self, parts):
        last, before = parts[-1], self.rows
        gone = {key_of(name) for part in parts for name in part.delete}
        kept = {} if last.full else {key: row for key, row in before.items() if key not in gone}
        self.rows = kept | {key_of(row): row for part in parts for row in part.set}
        self.instance, self.revision = last.instance, last.revision
        print(f"# {api.Family.Name(self.number)} {'everything' if last.full else 'what changed'}", flush=True)
        for key in sorted(key for key in before | self.rows if before.get(key) != self.rows.get(key)):
            print("\n".join([f"+ {key}", *lines_of(self.rows[key])]) if key in self.rows else f"- {key}", flush=True)


def key_of(name):
    return f"{name.namespace}/{name.name}:{name.port_name} {api.Protocol.Name(name.protocol)}"


def lines_of(row):
    pools = {api.TARGET_CLUSTER: row.cluster, api.TARGET_LOCAL: row.local}
    for at in row.destinations:
        for rule in at.rules:  # the first that fits decides. Name() raises ValueError for what we don't know: never guess
            origin, to = api.Origin.Name(getattr(rule, "from")), api.Target.Name(rule.to)
            servers = [f"{row.endpoints[index].ip}:{row.endpoints[index].port}" for index in pools.get(rule.to, ())]
            yield " ".join([f"    {at.address or 'node'}:{at.port}", origin, *["MASQUERADE"] * rule.masquerade, to, *servers])


def follow(watch, families):
    """Follow one stream until it ends."""
    requests, parts = queue.SimpleQueue(), collections.defaultdict(list)
    settings = api.Settings(masquerade_bit=14, detect_local=api.DetectLocal(cluster_cidr=api.CIDRs()))
    requests.put(api.WatchRequest(hello=api.Hello(node_name=node_name, settings=settings, version="python-consumer")))
    for family in families.values():
        requests.put(family.ask())
    try:
        for response in watch(iter(requests.get, None), wait_for_ready=True):
            part = response.change_set
            if response.HasField("change_set"):
                parts[part.family].append(part)
                if not part.more:
                    families[part.family].take(parts.pop(part.family))
                    requests.put(families[part.family].ask())
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.UNAVAILABLE:
            raise
    finally:
        requests.put(None)


held = {number: Family(number) for number in (api.FAMILY_IPV4, api.FAMILY_IPV6)}
with grpc.insecure_channel(target, [("grpc.max_reconnect_backoff_ms", 5_000)]) as channel:
    while True:
        follow(services.NodeStateStub(channel).Watch, held)
        time.sleep(1)
