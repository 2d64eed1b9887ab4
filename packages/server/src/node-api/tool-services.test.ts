import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { beforeEach, describe, expect, test } from "vitest";
import { HealthCheckRequest, HealthCheckResponse } from "../gen/grpc/health/v1/health.ts";
import { ServerReflectionRequest, ServerReflectionResponse } from "../gen/grpc/reflection/v1/reflection.ts";
import { TestStateServer } from "../test-support/state-server.ts";
import { eventually, untilTestEnds } from "../test-support/world.ts";

let stateServer: TestStateServer;
let client: Client;

beforeEach(async () => {
  stateServer = await TestStateServer.start();
  client = untilTestEnds(new Client(stateServer.target, credentials.createInsecure()));
});

const ask = (service: string): Buffer => Buffer.from(HealthCheckRequest.encode({ service }).finish());
const same = (bytes: Buffer): Buffer => bytes;
const statusOf = (bytes: Buffer): number => HealthCheckResponse.decode(bytes).status;

function check(service: string): Promise<number> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest("/grpc.health.v1.Health/Check", same, statusOf, ask(service), (error, value = -1) =>
      error === null ? resolve(value) : reject(error),
    );
  });
}

describe("gRPC health", () => {
  test("follows what the node-state server says of itself, per service and for all", async () => {
    expect([await check(""), await check("turnout.node.v1.NodeState")]).toEqual([2, 2]);
    stateServer.server?.setServing(true);
    expect([await check(""), await check("turnout.node.v1.NodeState")]).toEqual([1, 1]);
    await expect(check("no.Such")).rejects.toMatchObject({ code: 5 } satisfies Partial<ServiceError>);
  });

  test("is told to watchers as it changes", async () => {
    const call = client.makeServerStreamRequest("/grpc.health.v1.Health/Watch", same, statusOf, ask(""), new Metadata());
    const heard: number[] = [];
    call.on("data", (value: number) => heard.push(value));
    call.on("error", () => undefined);
    await eventually(() => heard.length === 1);
    stateServer.server?.setServing(true);
    stateServer.server?.setServing(true);
    await eventually(() => heard.length === 2);
    expect(heard).toEqual([2, 1]);
    call.cancel();
  });

  test("is SERVICE_UNKNOWN for what somebody watches that is not here, which is no error", async () => {
    stateServer.server?.setServing(true);
    const call = client.makeServerStreamRequest("/grpc.health.v1.Health/Watch", same, statusOf, ask("no.Such"), new Metadata());
    call.on("error", () => undefined);
    expect(await new Promise<number>((resolve) => call.on("data", resolve))).toBe(3);
    call.cancel();
  });
});

describe("gRPC reflection", () => {
  async function reflect(version: string, messageRequest: ServerReflectionRequest["messageRequest"]): Promise<ServerReflectionResponse> {
    const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
    const encode = (request: ServerReflectionRequest): Buffer => Buffer.from(ServerReflectionRequest.encode(request).finish());
    const call = client.makeBidiStreamRequest(path, encode, (bytes) => ServerReflectionResponse.decode(bytes), new Metadata());
    call.write({ host: "", messageRequest });
    const answer = await new Promise<ServerReflectionResponse>((resolve, reject) => call.on("data", resolve).on("error", reject));
    call.end();
    return answer;
  }

  test.each(["v1", "v1alpha"])("%s lists the services", async (version) => {
    const { messageResponse } = await reflect(version, { $case: "listServices", value: "" });
    expect(messageResponse).toEqual({
      $case: "listServicesResponse",
      value: {
        service: [
          { name: "turnout.node.v1.NodeState" },
          { name: "grpc.health.v1.Health" },
          { name: "grpc.reflection.v1.ServerReflection" },
        ],
      },
    });
  });

  const questions: readonly ["fileContainingSymbol" | "fileByFilename", string, string][] = [
    ["fileContainingSymbol", "turnout.node.v1.NodeState", "turnout/node/v1/node.proto"],
    ["fileContainingSymbol", "grpc.health.v1.Health.Check", "grpc/health/v1/health.proto"],
    ["fileByFilename", "turnout/node/v1/node.proto", "turnout/node/v1/node.proto"],
  ];
  test.each(questions)("gives the file for %s %s", async ($case, value, name) => {
    const { messageResponse } = await reflect("v1", { $case, value });
    if (messageResponse?.$case !== "fileDescriptorResponse") throw new Error(`answered ${messageResponse?.$case}`);
    expect(messageResponse.value.fileDescriptorProto).toHaveLength(1);
    // A FileDescriptorProto begins with its name: field 1, length, text.
    expect(messageResponse.value.fileDescriptorProto[0]?.toString("latin1", 2, 2 + name.length)).toBe(name);
  });

  test("says what it does not know", async () => {
    const { messageResponse } = await reflect("v1", { $case: "fileContainingSymbol", value: "other.Thing" });
    expect(messageResponse).toMatchObject({ $case: "errorResponse", value: { errorCode: 5 } });
  });
});
