#include "engine/optimize/report/compressed_size.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"

namespace optfarm::optimize {
namespace {

constexpr int kLevel = 6;
// Added to the window's size: a gzip header instead of zlib's.
constexpr int kGzip = 16;
constexpr int kMemoryLevel = 8;
constexpr size_t kPiece = size_t{1} << 20;

}  // namespace

absl::StatusOr<int64_t> GzipSize(absl::string_view bytes) {
  z_stream stream = {};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, MAX_WBITS + kGzip, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to measure a packed size");
  }
  std::vector<Bytef> out(kPiece);
  int64_t size = 0;
  size_t at = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    const size_t piece = std::min(bytes.size() - at, kPiece);
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data())) + at;
    stream.avail_in = static_cast<uInt>(piece);
    at += piece;
    do {
      stream.next_out = out.data();
      stream.avail_out = static_cast<uInt>(out.size());
      result = deflate(&stream, at == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
      size += static_cast<int64_t>(out.size() - stream.avail_out);
    } while (stream.avail_out == 0 && result == Z_OK);
    if (result == Z_BUF_ERROR && at < bytes.size()) result = Z_OK;
  }
  deflateEnd(&stream);
  if (result != Z_STREAM_END) {
    return absl::InternalError("zlib did not come to an end");
  }
  return size;
}

absl::StatusOr<int64_t> ZstdSize(absl::string_view bytes) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(
      ZSTD_createCCtx(), ZSTD_freeCCtx);
  if (context == nullptr) {
    return absl::ResourceExhaustedError("no memory to measure a packed size");
  }
  // The header then has the content's size, as the command-line tool writes it.
  ZSTD_CCtx_setPledgedSrcSize(context.get(), bytes.size());
  std::vector<char> out(ZSTD_CStreamOutSize());
  ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
  int64_t size = 0;
  size_t left = 1;
  while (left != 0) {
    ZSTD_outBuffer piece = {out.data(), out.size(), 0};
    left = ZSTD_compressStream2(context.get(), &piece, &in, ZSTD_e_end);
    if (ZSTD_isError(left)) {
      return absl::InternalError(
          absl::StrCat("zstd failed: ", ZSTD_getErrorName(left)));
    }
    size += static_cast<int64_t>(piece.pos);
  }
  return size;
}

}  // namespace optfarm::optimize
