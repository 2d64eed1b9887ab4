import { BinaryReader } from "@bufbuild/protobuf/wire";
import type { handleBidiStreamingCall, ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import { status } from "@grpc/grpc-js";
import { ServerReflectionRequest, ServerReflectionResponse } from "../gen/grpc/reflection/v1/reflection.ts";

const LENGTH_DELIMITED = 2;
const FILE = 1;
const FILE_NAME = 1;
const FILE_PACKAGE = 2;

/** One proto file: its FileDescriptorProto, and what little of it we look at. */
interface ProtoFile {
  readonly name: string;
  readonly packageName: string;
  readonly bytes: Buffer;
}

/** Take the length-delimited fields of a message. */
function* fieldsOf(bytes: Uint8Array): Generator<readonly [field: number, value: Uint8Array], void> {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (Number(wireType) === LENGTH_DELIMITED) yield [field, reader.bytes()];
    else reader.skip(wireType);
  }
}

/** Split FileDescriptorSets, given as base64, into their files. */
function filesOf(sets: readonly string[]): readonly ProtoFile[] {
  const text = new TextDecoder();
  return sets.flatMap((set) =>
    [...fieldsOf(Buffer.from(set, "base64"))].flatMap(([field, value]) => {
      if (field !== FILE) return [];
      const fields = [...fieldsOf(value)];
      const textOf = (wanted: number): string => text.decode(fields.find(([one]) => one === wanted)?.[1]);
      return [{ name: textOf(FILE_NAME), packageName: textOf(FILE_PACKAGE), bytes: Buffer.from(value) }];
    }),
  );
}

const method = {
  requestSerialize: (message: ServerReflectionRequest) => Buffer.from(ServerReflectionRequest.encode(message).finish()),
  requestDeserialize: (bytes: Buffer) => ServerReflectionRequest.decode(bytes),
  responseSerialize: (message: ServerReflectionResponse) => Buffer.from(ServerReflectionResponse.encode(message).finish()),
  responseDeserialize: (bytes: Buffer) => ServerReflectionResponse.decode(bytes),
  requestStream: true,
  responseStream: true,
};

/** gRPC's reflection protocol; v1alpha, which older tools speak, has the same messages. */
export const REFLECTION_DEFINITIONS: readonly ServiceDefinition[] = ["v1", "v1alpha"].map((version) => ({
  serverReflectionInfo: { ...method, path: `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo` },
}));

/**
 * Answer what tools such as grpcurl ask before they can call anything.
 *
 * Shape: `services` are full names; `descriptors` base64 FileDescriptorSets that describe them.
 */
export function reflectionHandlers(services: readonly string[], descriptors: readonly string[]): UntypedServiceImplementation {
  const files = filesOf(descriptors);
  const fileWith = (symbol: string): ProtoFile | undefined => files.find(({ packageName }) => symbol.startsWith(`${packageName}.`));
  const answer = ({ messageRequest }: ServerReflectionRequest): ServerReflectionResponse["messageResponse"] => {
    if (messageRequest?.$case === "listServices") {
      return { $case: "listServicesResponse", value: { service: services.map((name) => ({ name })) } };
    }
    const file =
      messageRequest?.$case === "fileByFilename"
        ? files.find(({ name }) => name === messageRequest.value)
        : messageRequest?.$case === "fileContainingSymbol"
          ? fileWith(messageRequest.value)
          : undefined;
    if (file !== undefined) return { $case: "fileDescriptorResponse", value: { fileDescriptorProto: [file.bytes] } };
    return { $case: "errorResponse", value: { errorCode: status.NOT_FOUND, errorMessage: "no such file or symbol here" } };
  };
  const serverReflectionInfo: handleBidiStreamingCall<ServerReflectionRequest, ServerReflectionResponse> = (call) => {
    call.on("data", (request: ServerReflectionRequest) => {
      call.write({ validHost: request.host, originalRequest: request, messageResponse: answer(request) });
    });
    call.on("end", () => call.end());
  };
  return { serverReflectionInfo };
}
