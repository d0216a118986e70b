/** Applies messages that plugins changed, and derives everything from them again. */
import type { ChatRequest } from '../../domain/chat-request.js';
import { calledToolBytes } from '../../domain/prompt-overheads.js';
import { unescapedBytes } from '../../wire/json-escapes.js';
import { checkMessages } from './messages.js';
import { estimatedTokens, mediaTokens } from './schema.js';
import { promptWindow } from './prompt-window.js';

const NO_MESSAGES = Buffer.alloc(0);

/** `messages`: JSON text. Throws on invalid messages, which plugins never produce. The conversation keeps its name. */
export function withMessages(request: ChatRequest, messages: Buffer): ChatRequest {
  const value: unknown = JSON.parse(messages.toString('utf8'));
  const facts = checkMessages(value);
  const before = request.fields.find(({ name }) => name === 'messages')?.value ?? NO_MESSAGES;
  const promptBytes = request.promptBytes - unescapedBytes(before) + unescapedBytes(messages);
  return {
    ...request,
    fields: request.fields.map((field) => (field.name === 'messages' ? { name: 'messages', value: messages } : field)),
    needs: { ...request.needs, vision: facts.vision, fileInput: facts.fileInput, audioInput: facts.audioInput, ownCredential: facts.storedParam !== undefined },
    storedParam: facts.storedParam,
    messageCount: facts.count,
    imageCount: facts.imageCount,
    calledToolBytes: calledToolBytes(facts.calledTools),
    promptBytes,
    inlineImageBytes: facts.inlineImageChars,
    inlineSoundBytes: facts.inlineSoundChars,
    soundTokensMax: facts.soundTokensMax,
    promptTokens: estimatedTokens(promptBytes, facts),
    mediaTokens: mediaTokens(facts),
    hasUnboundedParts: facts.hasUnboundedParts,
    promptText: request.promptText === '' ? '' : promptWindow(value),
  };
}
