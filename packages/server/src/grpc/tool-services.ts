import type { GrpcService } from "./grpc-server.ts";
import { HEALTH_DEFINITION, HealthService } from "./health-service.ts";
import { REFLECTION_DEFINITIONS, reflectionHandlers } from "./reflection-service.ts";

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
