import { jest } from '@jest/globals';
import { describeContract, TEST_MS } from './every-suite.js';

jest.setTimeout(TEST_MS);
describeContract('standalone', 'B');
