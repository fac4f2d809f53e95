#include "storage/sql/deflate.h"

#include <zlib.h>

namespace optfarm::storage {
namespace {

// Run times differ in their low bits, which no effort makes smaller.
constexpr int kEffort = 1;
// UNITS: bytes. Above what a completion may bring.
constexpr size_t kMaxBytes = size_t{64} << 20;

const Bytef* BytesOf(absl::string_view text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

}  // namespace

absl::StatusOr<std::string> Deflate(absl::string_view bytes) {
  std::string deflated(compressBound(bytes.size()), '\0');
  uLongf size = deflated.size();
  if (compress2(reinterpret_cast<Bytef*>(deflated.data()), &size,
                BytesOf(bytes), bytes.size(), kEffort) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to compress samples with");
  }
  deflated.resize(size);
  return deflated;
}

absl::StatusOr<std::string> Inflate(absl::string_view deflated, size_t size) {
  const absl::Status damaged = absl::DataLossError(
      "the database holds damaged samples; restore it from a backup");
  if (size > kMaxBytes) return damaged;
  std::string bytes(size, '\0');
  uLongf filled = bytes.size();
  if (uncompress(reinterpret_cast<Bytef*>(bytes.data()), &filled,
                 BytesOf(deflated), deflated.size()) != Z_OK ||
      filled != size) {
    return damaged;
  }
  return bytes;
}

}  // namespace optfarm::storage
