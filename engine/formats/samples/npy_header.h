// The header of a .npy file: a Python dict literal with three known keys. Only
// npy.cc and its tests include this file.

#ifndef OPTFARM_ENGINE_FORMATS_SAMPLES_NPY_HEADER_H_
#define OPTFARM_ENGINE_FORMATS_SAMPLES_NPY_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::formats {

struct NpyHeader {
  // NumPy's type text: "<f4", "|u1", ">i2", "|S12".
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
  // UNITS: bytes. Where the elements begin.
  size_t data_offset = 0;
};

// ERRORS: InvalidArgument saying what is wrong, without the file's name.
absl::StatusOr<NpyHeader> ReadNpyHeader(absl::string_view file);

// A version 1 header, padded so that the elements begin at a multiple of 64.
std::string WriteNpyHeader(absl::string_view descr,
                           const std::vector<int64_t>& shape);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_SAMPLES_NPY_HEADER_H_
