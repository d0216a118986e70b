import { jest } from '@jest/globals';
import { describeContract, TEST_MS } from '../conformance/every-suite.js';

jest.setTimeout(TEST_MS);
describeContract('split', 'A');
