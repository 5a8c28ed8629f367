// Asks for VAAs with grpc-web, in its binary form and in text. Arguments: the address of
// the archive and a JSON of what to ask: calls of a format, a method, and the request's
// message in base64. Each answer is a line of JSON, with the response's message so.
global.XMLHttpRequest = require("xhr2"); // as browsers have it
const { GrpcWebClientBase, MethodDescriptor, MethodType } = require("grpc-web");

const [api, asked] = [process.argv[2], JSON.parse(process.argv[3])];
const say = (name, value) => console.log(JSON.stringify({ name, value }));

// call leaves the messages as they are on the wire.
async function call({ format, method, request }) {
  const path = "/publicrpc.v1.PublicRPCService/" + method;
  const descriptor = new MethodDescriptor(path, MethodType.UNARY, Uint8Array, Uint8Array, (bytes) => bytes, (bytes) => bytes);
  const client = new GrpcWebClientBase({ format });
  try {
    const response = await client.unaryCall(api + path, Uint8Array.from(Buffer.from(request, "base64")), {}, descriptor);
    return { code: 0, message: "", response: Buffer.from(response).toString("base64") };
  } catch (e) {
    return { code: e.code, message: e.message };
  }
}

(async () => {
  for (const c of asked) {
    say("answer", await call(c));
  }
})();
