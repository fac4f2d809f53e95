// Operands for tests of micro-kernels.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_UKERNELS_MICRO_KERNEL_CASES_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_UKERNELS_MICRO_KERNEL_CASES_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace optfarm::runtime {

class Random {
 public:
  int Pick(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(engine_);
  }
  // Any bytes, every fourth the extreme that saturating instructions clamp.
  template <typename Byte>
  std::vector<Byte> Bytes(int64_t count, Byte extreme) {
    std::vector<Byte> bytes(static_cast<size_t>(count));
    for (Byte& byte : bytes) {
      byte = engine_() % 4 == 0 ? extreme : static_cast<Byte>(engine_());
    }
    return bytes;
  }
  // `shift`: by how much they are smaller than any 32 bits.
  std::vector<int32_t> Integers(int64_t count, int shift) {
    std::vector<int32_t> values(static_cast<size_t>(count));
    for (int32_t& value : values) {
      value = static_cast<int32_t>(engine_()) >> shift;
    }
    return values;
  }
  std::vector<float> Reals(int64_t count, float least, float most) {
    std::uniform_real_distribution<float> number(least, most);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = number(engine_);
    return values;
  }
  // Every fourth lies halfway between two integers.
  std::vector<float> Floats(int64_t count, float most) {
    std::uniform_real_distribution<float> number(-most, most);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
      value = number(engine_);
      if (Pick(0, 3) == 0) value = static_cast<float>(Pick(-40, 40)) + 0.5f;
    }
    return values;
  }

 private:
  std::mt19937 engine_{17};
};

// Memory that begins at a multiple of 64 bytes.
template <typename T>
class Aligned {
 public:
  explicit Aligned(int64_t count, T value = {})
      : room_(static_cast<size_t>(count) + 64 / sizeof(T), value) {
    const auto at = reinterpret_cast<uintptr_t>(room_.data());
    data_ = room_.data() + (64 - at % 64) % 64 / sizeof(T);
  }
  explicit Aligned(const std::vector<T>& values)
      : Aligned(static_cast<int64_t>(values.size())) {
    // The compiler takes a copy of both for one that could overflow.
    for (size_t i = 0; i < values.size(); ++i) data_[i] = values[i];
  }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;

  T* data() { return data_; }

 private:
  std::vector<T> room_;
  T* data_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_UKERNELS_MICRO_KERNEL_CASES_H_
