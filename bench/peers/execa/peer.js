// execa in the shapes the bench knows.
//
// `peer.js run CMD…` stands in front of a command and stops it, on SIGTERM, by
// `kill` with execa's own escalation. `peer.js serve` spawns the tab-separated
// command lines it reads and answers each with two readings of the monotonic
// clock. `peer.js capture FILE CMD…` runs a command and writes what it prints to FILE.

import process from 'node:process';
import readline from 'node:readline';
import {execa} from 'execa';

const GRACE = 5000;
const options = {stdio: 'inherit', reject: false, cleanup: true, forceKillAfterDelay: GRACE};

async function run([program, ...args]) {
	let running;
	let stopped = false;
	process.on('SIGTERM', () => {
		stopped = true;
		running?.kill('SIGTERM');
	});
	running = execa(program, args, options);
	const {exitCode} = await running;
	process.exit(stopped ? 1 : (exitCode ?? 1));
}

async function serve() {
	for await (const line of readline.createInterface({input: process.stdin})) {
		const [program, ...args] = line.split('\t');
		const start = process.hrtime.bigint();
		await execa(program, args, {...options, stdio: ['ignore', 'inherit', 'inherit']});
		const end = process.hrtime.bigint();
		process.stdout.write(`${start} ${end}\n`);
	}
}

async function capture([file, program, ...args]) {
	const stdio = ['ignore', {file}, 'inherit'];
	const {exitCode} = await execa(program, args, {...options, stdio, buffer: false});
	process.exit(exitCode ?? 1);
}

const [mode, ...rest] = process.argv.slice(2);
await {run, serve, capture}[mode](rest);
