// Weights in the order in which fast kernels read them. They are packed when a
// run first needs them, once for all sessions over a model; from then on what
// they were before is given up where nobody else reads it, so that a model's
// weights are in memory once. Who asks for them later gets them unpacked.
//
// Weights in a mapped file may also be streamed: each run packs them when it
// comes to their layer, and lets both forms go after it. That saves what they
// take; it costs time, little where each weight is multiplied with many rows. A
// kernel with one row reads each weight once: it may read them where they are,
// and lets their pages go.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_PACKED_WEIGHTS_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_PACKED_WEIGHTS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"

namespace optfarm::runtime {

// Whether the elements stand where kernels count on: at a multiple of 64 bytes.
// Only views of mapped files may do not.
bool IsAligned(const Tensor& tensor);

// An order of weights, and the way there and back.
struct WeightLayout {
  // Tells that the first `end` bytes of the weights are not read any more.
  using Done = absl::FunctionRef<void(int64_t end)>;

  // Says all that the packed form depends on besides the weights.
  std::string name;
  // UNITS: bytes of the packed form.
  int64_t packed_bytes = 0;
  // The weights may be misaligned. ERRORS: ResourceExhausted when there is no
  // memory; not after `done` was called.
  std::function<absl::StatusOr<Tensor>(const Tensor& weights, ThreadPool* pool,
                                       Done done)>
      pack;
  // The weights again, in any shape of as many elements. ERRORS:
  // ResourceExhausted.
  std::function<absl::StatusOr<Tensor>(const Tensor& packed)> unpack;
};

// Reads weights from end to end where they are.
using WeightVisitor =
    absl::FunctionRef<void(const Tensor& weights, WeightLayout::Done done)>;

// What runs do with a constant.
enum class WeightUse : uint8_t {
  // Packed when it is first needed.
  kPacked,
  // Packed by each run, and let go.
  kStreamed,
  // The same by runs that multiply them with many rows, packed by others.
  kStreamedForMany,
  // Packed only for who cannot read it where it is.
  kInPlace,
};

// A constant: as it came, packed, or both.
// THREADS: may be used from many threads at once; who asks for what is being
// packed waits.
class SharedWeights {
 public:
  // `mapped_file`: where the elements lie, if it is in a mapped file, which has
  // them again when its pages are let go.
  explicit SharedWeights(Tensor value, absl::string_view mapped_file = {});
  SharedWeights(const SharedWeights&) = delete;
  SharedWeights& operator=(const SharedWeights&) = delete;

  // As it came; aligned.
  // ERRORS: ResourceExhausted when there is no memory to unpack or align it.
  absl::StatusOr<Tensor> Value();
  // Whether it has this dtype and number of elements.
  bool IsLike(const Tensor& value) const {
    return value.dtype() == dtype_ &&
           value.num_elements() == shape_.num_elements();
  }

 private:
  friend class PackedWeights;
  bool is_mapped() const { return !mapped_file_.empty(); }
  struct Form {
    WeightLayout layout;
    // From then on `packed` does not change.
    std::atomic<bool> is_ready{false};
    Tensor packed;
  };

  Form* FindOrAdd(WeightLayout layout);
  // nullptr when there is no memory.
  const Tensor* Pack(Form* form, ThreadPool* pool);
  // For one use. REQUIRES: is_mapped(). ERRORS: ResourceExhausted.
  absl::StatusOr<Tensor> PackAnew(const Form& form, ThreadPool* pool);
  // REQUIRES: is_mapped().
  void Read(WeightVisitor read);
  absl::StatusOr<std::shared_ptr<const Tensor>> Keep()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same, aligned.
  absl::StatusOr<std::shared_ptr<const Tensor>> KeepAligned()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const DataType dtype_;
  const Shape shape_;
  const absl::string_view mapped_file_;
  absl::Mutex mutex_;
  // Nothing when there is a packed form to make it from.
  std::shared_ptr<const Tensor> kept_ ABSL_GUARDED_BY(mutex_);
  // The same, as long as somebody has it.
  std::weak_ptr<const Tensor> last_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Form>> forms_ ABSL_GUARDED_BY(mutex_);
};

// One packed form of a constant. OWNERSHIP: copies share it. THREADS: as
// SharedWeights.
class PackedWeights {
 public:
  PackedWeights() = default;
  // To be packed when first asked for; once for each constant and layout.
  PackedWeights(std::shared_ptr<SharedWeights> weights, WeightLayout layout)
      : weights_(std::move(weights)),
        form_(weights_->FindOrAdd(std::move(layout))),
        use_(std::make_shared<WeightUse>(WeightUse::kPacked)) {}
  // Of a form that is ready.
  explicit PackedWeights(Tensor packed);

  // Packs if nobody did before, with all threads of the pool. nullptr when
  // there is no memory for it.
  const Tensor* Get(ThreadPool* pool) const {
    return form_->is_ready.load(std::memory_order_acquire)
               ? &form_->packed
               : weights_->Pack(form_, pool);
  }
  // The same for weights that may be streamed: then `own` holds them. `rows`:
  // what they are to be multiplied with.
  const Tensor* Get(ThreadPool* pool, int64_t rows, Tensor* own) const;
  // For weights that are to be used in place and that nobody has packed: calls
  // `read` and returns true.
  bool ReadInPlace(WeightVisitor read) const;
  // For all copies of this handle. REQUIRES: is_mapped() for other uses than
  // kPacked; nobody asked for them yet.
  void SetUse(WeightUse use) const { *use_ = use; }
  WeightUse use() const { return *use_; }
  bool is_mapped() const { return weights_->is_mapped(); }
  // nullptr while nobody has packed them.
  const Tensor* IfReady() const {
    return form_ != nullptr && form_->is_ready.load(std::memory_order_acquire)
               ? &form_->packed
               : nullptr;
  }
  // REQUIRES: Get gave the same.
  const Tensor& packed() const { return form_->packed; }
  // The weights as they came. ERRORS: SharedWeights::Value's.
  absl::StatusOr<Tensor> Value() const { return weights_->Value(); }
  // UNITS: bytes.
  int64_t packed_bytes() const { return form_->layout.packed_bytes; }
  // The same for all handles of one form.
  const void* id() const { return form_; }

 private:
  std::shared_ptr<SharedWeights> weights_;
  SharedWeights::Form* form_ = nullptr;
  // Written before the first run.
  std::shared_ptr<WeightUse> use_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_PACKED_WEIGHTS_H_
