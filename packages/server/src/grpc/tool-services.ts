import { status } from "@grpc/grpc-js";
import type { handleServerStreamingCall, handleUnaryCall, ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import type { GrpcService } from "./grpc-server.ts";
import { REFLECTION_DEFINITIONS, reflectionHandlers } from "./reflection-service.ts";
import { HealthCheckRequest, HealthCheckResponse } from "../gen/grpc/health/v1/health.ts";

const UNKNOWN_SERVICE = 3;
const SERVING = 1;
const NOT_SERVING = 2;

const encode = (message: HealthCheckResponse): Buffer => Buffer.from(HealthCheckResponse.encode(message).finish());
const method = {
  requestSerialize: (message: HealthCheckRequest) => Buffer.from(HealthCheckRequest.encode(message).finish()),
  requestDeserialize: (bytes: Buffer) => HealthCheckRequest.decode(bytes),
  responseSerialize: encode,
  responseDeserialize: (bytes: Buffer) => HealthCheckResponse.decode(bytes),
  requestStream: false,
};

/** gRPC's health checking protocol. */
const HEALTH_DEFINITION: ServiceDefinition = {
  check: { ...method, path: "/grpc.health.v1.Health/Check", responseStream: false },
  watch: { ...method, path: "/grpc.health.v1.Health/Watch", responseStream: true },
};

/** What is served, and whether it is yet. */
class HealthService {
  readonly #services: ReadonlySet<string>;
  readonly #listeners = new Set<() => void>();
  #isServing = false;

  /** `services` are full names; "" (the whole server) is always known. */
  constructor(services: readonly string[]) {
    this.#services = new Set(["", ...services]);
  }

  /** Change what is answered from now on. */
  setServing(isServing: boolean): void {
    if (this.#isServing === isServing) return;
    this.#isServing = isServing;
    for (const notify of this.#listeners) notify();
  }

  /** The handlers for {@link HEALTH_DEFINITION}. */
  get handlers(): UntypedServiceImplementation {
    const check: handleUnaryCall<HealthCheckRequest, HealthCheckResponse> = ({ request }, reply) => {
      if (this.#services.has(request.service)) reply(null, { status: this.#status(request.service) });
      else reply({ code: status.NOT_FOUND, details: `no service ${JSON.stringify(request.service)} here` });
    };
    const watch: handleServerStreamingCall<HealthCheckRequest, HealthCheckResponse> = (call) => {
      // Someone who does not read gets nothing more.
      const notify = (): void => {
        if (!call.writableNeedDrain) call.write({ status: this.#status(call.request.service) });
      };
      const stop = (): void => void this.#listeners.delete(notify);
      this.#listeners.add(notify);
      call.on("cancelled", stop).on("close", stop);
      notify();
    };
    return { check, watch };
  }

  #status(service: string): HealthCheckResponse["status"] {
    if (!this.#services.has(service)) return UNKNOWN_SERVICE;
    return this.#isServing ? SERVING : NOT_SERVING;
  }
}

/** Services for tools, and not for watchers: gRPC's health and reflection. */
export interface ToolServices {
  readonly services: readonly GrpcService[];
  /** Say to whoever checks health whether state is complete. */
  setServing(isServing: boolean): void;
}

const OWN_NAMES: readonly string[] = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"];

/** Make the services for tools. `names` are the other services, in full; `descriptors` base64 FileDescriptorSets of all of them. */
export function createToolServices(names: readonly string[], descriptors: readonly string[]): ToolServices {
  const all = [...names, ...OWN_NAMES];
  const health = new HealthService(all);
  const reflection = reflectionHandlers(all, descriptors);
  return {
    services: [
      { definition: HEALTH_DEFINITION, handlers: health.handlers },
      ...REFLECTION_DEFINITIONS.map((definition) => ({ definition, handlers: reflection })),
    ],
    setServing: (isServing) => health.setServing(isServing),
  };
}
