// Transposes of all orders against the definition: out[i_perm] = in[i].

#include "engine/runtime/reference/arrays/transpose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "engine/runtime/core/thread_pool.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using tensorflow::DataType;

// Bytes that do not repeat soon, so that parts of two elements are told apart.
Tensor Numbered(DataType dtype, const std::vector<int64_t>& dims) {
  Tensor tensor =
      Tensor::Allocate(dtype, Shape::FromDims(dims).value()).value();
  char* bytes = static_cast<char*>(tensor.raw());
  for (int64_t i = 0; i < tensor.TotalBytes(); ++i) {
    bytes[i] = static_cast<char>((i * 2654435761u) >> 13);
  }
  return tensor;
}

std::string ByDefinition(const Tensor& in, const std::vector<int>& perm) {
  const int rank = in.rank();
  const int64_t size = in.TotalBytes() / in.num_elements();
  std::vector<int64_t> strides(rank, 1);
  for (int i = rank - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * in.dim(i + 1);
  }
  std::string out;
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    int64_t rest = i;
    int64_t from = 0;
    for (int d = rank - 1; d >= 0; --d) {
      from += rest % in.dim(perm[d]) * strides[perm[d]];
      rest /= in.dim(perm[d]);
    }
    out.append(static_cast<const char*>(in.raw()) + from * size, size);
  }
  return out;
}

void ExpectAllOrdersRight(DataType dtype, const std::vector<int64_t>& dims,
                          ThreadPool* pool) {
  const Tensor in = Numbered(dtype, dims);
  std::vector<int> perm(dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  do {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, Transposed(in, perm, pool));
    for (size_t i = 0; i < perm.size(); ++i) {
      ASSERT_EQ(out.dim(i), in.dim(perm[i]));
    }
    const std::string bytes(static_cast<const char*>(out.raw()),
                            out.TotalBytes());
    ASSERT_TRUE(bytes == ByDefinition(in, perm))
        << ::testing::PrintToString(dims) << " by "
        << ::testing::PrintToString(perm);
  } while (std::next_permutation(perm.begin(), perm.end()));
}

class TransposeTest : public ::testing::TestWithParam<DataType> {};

TEST_P(TransposeTest, AllOrdersOfAllKindsOfSizes) {
  ThreadPool pool(2);
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{},
                                         {7},
                                         {5, 3},
                                         {1, 40, 1},
                                         {17, 33},
                                         {16, 16, 16},
                                         {2, 31, 3},
                                         {3, 130, 2, 18},
                                         {4, 1, 5, 19, 2},
                                         {2, 3, 1, 4, 5, 2}}) {
    ExpectAllOrdersRight(GetParam(), dims, &pool);
  }
}

TEST_P(TransposeTest, PiecesOfThreadsMeet) {
  ThreadPool pool(3);
  // More than a thread does at least, in each of the dimensions.
  ExpectAllOrdersRight(GetParam(), {3, 150, 211}, &pool);
  ExpectAllOrdersRight(GetParam(), {40000, 3}, &pool);
  ExpectAllOrdersRight(GetParam(), {2, 20000, 2}, &pool);
  ExpectAllOrdersRight(GetParam(), {43, 501, 4}, &pool);
}

INSTANTIATE_TEST_SUITE_P(Sizes, TransposeTest,
                         ::testing::Values(tensorflow::DT_UINT8,
                                           tensorflow::DT_HALF,
                                           tensorflow::DT_FLOAT,
                                           tensorflow::DT_DOUBLE,
                                           tensorflow::DT_COMPLEX128));

}  // namespace
}  // namespace optfarm::runtime
