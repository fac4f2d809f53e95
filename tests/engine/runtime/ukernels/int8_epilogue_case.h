// An epilogue for tests of int8 micro-kernels, with the oracle's result.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_UKERNELS_INT8_EPILOGUE_CASE_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_UKERNELS_INT8_EPILOGUE_CASE_H_

#include <cstdint>
#include <vector>

#include "engine/runtime/ukernels/int8/int8_epilogue.h"
#include "tests/engine/runtime/oracle/int8_oracle.h"
#include "tests/engine/runtime/ukernels/micro_kernel_cases.h"

namespace optfarm::runtime {

// An epilogue over accumulators of some 2^18, with its scales.
struct EpilogueCase {
  EpilogueCase(int nr, int channels_wanted, Random* random)
      : scales(nr), stride(channels_wanted + random->Pick(0, 9)) {
    for (float& scale : scales) {
      // Powers of two give halves.
      const int divisor = random->Pick(0, 1) == 0 ? 1 << random->Pick(9, 14)
                                                  : random->Pick(1000, 20000);
      scale = 1.0f / static_cast<float>(divisor);
    }
    epilogue.scales = scales.data();
    epilogue.has_small_scales = random->Pick(0, 1) != 0;
    epilogue.zero_point = random->Pick(0, 1) * random->Pick(0, 255);
    epilogue.least = random->Pick(0, epilogue.zero_point);
    epilogue.most = static_cast<float>(255 - epilogue.zero_point);
    epilogue.channels = channels_wanted;
    epilogue.stride = stride;
  }
  EpilogueCase(const EpilogueCase&) = delete;
  EpilogueCase& operator=(const EpilogueCase&) = delete;

  uint8_t Of(int32_t accumulator, int channel) const {
    return oracle::Requantize(accumulator, scales[channel], epilogue.zero_point,
                              epilogue.least);
  }

  std::vector<float> scales;
  int64_t stride;
  Int8Epilogue epilogue;
};

// The number of channels an epilogue stores: all, and around vectors' widths.
inline int PickChannels(int nr, Random* random) {
  return random->Pick(0, 1) == 0 ? nr : random->Pick(1, nr);
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_UKERNELS_INT8_EPILOGUE_CASE_H_
