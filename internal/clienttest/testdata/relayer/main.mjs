// Runs the worker of @wormhole-foundation/relayer-engine that looks for missed VAAs.
// Arguments: the address of the archive and a JSON of what to look for. Each VAA that
// reaches the application is a line of JSON.
import { createRequire } from "node:module";
const require = createRequire(import.meta.url);
const { RelayerApp, Environment, spawnMissedVaaWorker } = require("@wormhole-foundation/relayer-engine");
const winston = require("winston");

const [api, asked] = [process.argv[2], JSON.parse(process.argv[3])];
const app = new RelayerApp(Environment.MAINNET, {});
app.spy("127.0.0.1:1"); // nobody is there: only what was missed comes
app.chain(asked.chain).address(asked.emitter, async (ctx, next) => {
  const { emitterChain, emitterAddress, sequence } = ctx.vaa;
  console.log(JSON.stringify({
    name: "missed",
    value: {
      id: `${emitterChain}/${Buffer.from(emitterAddress).toString("hex")}/${sequence}`,
      base64: Buffer.from(ctx.vaaBytes).toString("base64"),
    },
  }));
  await next();
});
const logger = winston.createLogger({ level: "error", transports: [new winston.transports.Stream({ stream: process.stderr })] });
app.logger(logger);
app.listen().catch(() => {});
spawnMissedVaaWorker(app, {
  wormholeRpcs: [api],
  wormscanUrl: api,
  redis: asked.redis,
  checkInterval: 1000,
  fetchVaaRetries: 2,
  concurrency: 1,
  logger,
});
