// Texts to buckets by the three hash functions that TensorFlow uses:
// StringToHashBucket by MurmurHash64A, StringToHashBucketFast by FarmHash's
// Fingerprint64, StringToHashBucketStrong by SipHash-2-4 (Aumasson and
// Bernstein, "SipHash: a fast short-input PRF", 2012).

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/text/text_function.h"

namespace optfarm::runtime {
namespace {

// Up to eight bytes, the first one lowest.
uint64_t Word(const char* bytes, size_t count) {
  uint64_t word = 0;
  for (size_t i = 0; i < count; ++i) {
    word |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return word;
}

uint64_t Murmur(absl::string_view text) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  constexpr uint64_t kSeed = 0xDECAFCAFFE;
  uint64_t hash = kSeed ^ (text.size() * kFactor);
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t word = Word(text.data(), 8) * kFactor;
    word ^= word >> 47;
    hash = (hash ^ (word * kFactor)) * kFactor;
  }
  if (!text.empty()) {
    hash = (hash ^ Word(text.data(), text.size())) * kFactor;
  }
  hash = (hash ^ (hash >> 47)) * kFactor;
  return hash ^ (hash >> 47);
}

using Key = std::array<uint64_t, 2>;

class SipState {
 public:
  explicit SipState(const Key& key)
      : v_{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
           key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573} {}

  void Add(uint64_t word) {
    v_[3] ^= word;
    for (int i = 0; i < 2; ++i) Round();
    v_[0] ^= word;
  }
  uint64_t Finish() {
    v_[2] ^= 0xff;
    for (int i = 0; i < 4; ++i) Round();
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  }

 private:
  void Round() {
    v_[0] += v_[1];
    v_[1] = std::rotl(v_[1], 13) ^ v_[0];
    v_[0] = std::rotl(v_[0], 32);
    v_[2] += v_[3];
    v_[3] = std::rotl(v_[3], 16) ^ v_[2];
    v_[0] += v_[3];
    v_[3] = std::rotl(v_[3], 21) ^ v_[0];
    v_[2] += v_[1];
    v_[1] = std::rotl(v_[1], 17) ^ v_[2];
    v_[2] = std::rotl(v_[2], 32);
  }

  std::array<uint64_t, 4> v_;
};

uint64_t Sip(const Key& key, absl::string_view text) {
  SipState state(key);
  const uint64_t length = uint64_t{text.size()} << 56;
  for (; text.size() >= 8; text.remove_prefix(8)) {
    state.Add(Word(text.data(), 8));
  }
  state.Add(length | Word(text.data(), text.size()));
  return state.Finish();
}

absl::StatusOr<uint64_t> ReadBuckets(const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t buckets,
                           graph::GetInt(node, "num_buckets"));
  if (buckets >= 1) return static_cast<uint64_t>(buckets);
  return absl::InvalidArgumentError(
      absl::StrCat("num_buckets must be at least 1, but is ", buckets));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeMurmurBucket(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const uint64_t buckets, ReadBuckets(node));
  return MakeTextFunction<int64_t>(
      [buckets](const std::string& in, int64_t* out) {
        *out = static_cast<int64_t>(Murmur(in) % buckets);
        return absl::OkStatus();
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeStrongBucket(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const uint64_t buckets, ReadBuckets(node));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> words,
                           graph::GetInts(node, "key"));
  if (words.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("key must have two numbers, but has ", words.size()));
  }
  const Key key = {static_cast<uint64_t>(words[0]),
                   static_cast<uint64_t>(words[1])};
  return MakeTextFunction<int64_t>(
      [buckets, key](const std::string& in, int64_t* out) {
        *out = static_cast<int64_t>(Sip(key, in) % buckets);
        return absl::OkStatus();
      });
}

}  // namespace

void AddStringHashKernels(KernelCatalog* catalog) {
  catalog->Add("StringToHashBucket", MakeMurmurBucket);
  catalog->Add("StringToHashBucketStrong", MakeStrongBucket);
}

}  // namespace optfarm::runtime
