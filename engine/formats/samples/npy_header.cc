#include "engine/formats/samples/npy_header.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace optfarm::formats {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
// NumPy itself refuses to evaluate longer headers.
constexpr size_t kMaxHeaderBytes = 1 << 16;
constexpr size_t kMaxRank = 254;

// Reads the subset of Python literals that headers consist of.
class LiteralReader {
 public:
  explicit LiteralReader(absl::string_view text) : text_(text) {}

  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(absl::string_view word) {
    SkipSpace();
    if (!absl::StartsWith(text_.substr(at_), word)) return false;
    at_ += word.size();
    return true;
  }
  bool TakeString(std::string* out) {
    SkipSpace();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) {
      return false;
    }
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == absl::string_view::npos) return false;
    *out = std::string(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return true;
  }
  bool TakeInteger(int64_t* out) {
    SkipSpace();
    size_t end = at_;
    while (end < text_.size() && absl::ascii_isdigit(text_[end])) ++end;
    if (!absl::SimpleAtoi(text_.substr(at_, end - at_), out)) return false;
    at_ = end;
    // Python 2 wrote long integers with an L.
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return true;
  }
  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size();
  }

 private:
  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }

  absl::string_view text_;
  size_t at_ = 0;
};

bool ReadShape(LiteralReader* reader, std::vector<int64_t>* shape) {
  if (!reader->Take('(')) return false;
  while (!reader->Take(')')) {
    int64_t dim = 0;
    if (shape->size() >= kMaxRank || !reader->TakeInteger(&dim)) return false;
    shape->push_back(dim);
    if (reader->Take(',')) continue;
    return reader->Take(')');
  }
  return true;
}

absl::Status ReadDict(absl::string_view text, NpyHeader* header) {
  const absl::Status malformed = absl::InvalidArgumentError(
      "the .npy header is malformed; save the array again with numpy.save");
  LiteralReader reader(text);
  int seen = 0;
  if (!reader.Take('{')) return malformed;
  while (!reader.Take('}')) {
    std::string key;
    if (!reader.TakeString(&key) || !reader.Take(':')) return malformed;
    if (key == "descr") {
      if (!reader.TakeString(&header->descr)) {
        return absl::InvalidArgumentError(
            "the array's elements are structures; save one plain array a file");
      }
      seen |= 1;
    } else if (key == "fortran_order") {
      header->fortran_order = reader.TakeWord("True");
      if (!header->fortran_order && !reader.TakeWord("False")) return malformed;
      seen |= 2;
    } else if (key == "shape") {
      header->shape.clear();
      if (!ReadShape(&reader, &header->shape)) return malformed;
      seen |= 4;
    } else {
      return malformed;
    }
    reader.Take(',');
  }
  return seen == 7 && reader.AtEnd() ? absl::OkStatus() : malformed;
}

}  // namespace

absl::StatusOr<NpyHeader> ReadNpyHeader(absl::string_view file) {
  if (!absl::StartsWith(file, kMagic) || file.size() < 10) {
    return absl::InvalidArgumentError(
        "it is not a .npy file; save the array with numpy.save (an .npz "
        "archive holds several: save each alone)");
  }
  const auto byte = [&file](size_t i) -> size_t {
    return static_cast<unsigned char>(file[i]);
  };
  const size_t version = byte(6);
  if (version < 1 || version > 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        ".npy version ", version, " is not known; 1 to 3 are read"));
  }
  size_t length = byte(8) | byte(9) << 8;
  size_t start = 10;
  if (version >= 2) {
    if (file.size() < 12) {
      return absl::InvalidArgumentError("the .npy header is cut off");
    }
    length |= byte(10) << 16 | byte(11) << 24;
    start = 12;
  }
  if (length > file.size() - start) {
    return absl::InvalidArgumentError("the .npy header is cut off");
  }
  if (length > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the .npy header has ", length, " bytes; at most ",
                     kMaxHeaderBytes, " are read"));
  }
  NpyHeader header;
  OPTFARM_RETURN_IF_ERROR(ReadDict(file.substr(start, length), &header));
  header.data_offset = start + length;
  return header;
}

std::string WriteNpyHeader(absl::string_view descr,
                           const std::vector<int64_t>& shape) {
  std::string dict = absl::StrCat(
      "{'descr': '", descr, "', 'fortran_order': False, 'shape': (",
      absl::StrJoin(shape, ", "), shape.size() == 1 ? ",), }" : "), }");
  constexpr size_t kPrefix = 10;
  const size_t padded = (kPrefix + dict.size() + 1 + 63) / 64 * 64;
  dict.append(padded - kPrefix - dict.size() - 1, ' ');
  dict.push_back('\n');
  std::string header(kMagic);
  header.push_back(1);
  header.push_back(0);
  header.push_back(static_cast<char>(dict.size() & 0xff));
  header.push_back(static_cast<char>(dict.size() >> 8 & 0xff));
  return header + dict;
}

}  // namespace optfarm::formats
