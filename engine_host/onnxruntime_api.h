// The part of ONNX Runtime's C API that we call, as its version 5 and all later
// ones have it: a table of functions, each at its fixed place.

#ifndef OPTFARM_ENGINE_HOST_ONNXRUNTIME_API_H_
#define OPTFARM_ENGINE_HOST_ONNXRUNTIME_API_H_

#include <cstddef>
#include <cstdint>

namespace optfarm::engine_host::ort {

struct Status;
struct Env;
struct SessionOptions;
struct Session;
struct RunOptions;
struct Allocator;
struct MemoryInfo;
struct TypeInfo;
struct TensorShape;
struct Value;

inline constexpr uint32_t kApiVersion = 5;
inline constexpr int kLogErrors = 3;
inline constexpr int kAllOptimizations = 99;
inline constexpr int kDeviceAllocator = 0;
inline constexpr int kDefaultMemory = 0;

// Status* is nullptr for success.
struct Api {
  void* places_0_to_1[2];
  const char* (*GetErrorMessage)(const Status* status);
  Status* (*CreateEnv)(int log_level, const char* id, Env** env);
  void* places_4_to_6[3];
  Status* (*CreateSession)(const Env* env, const char* path,
                           const SessionOptions* options, Session** session);
  void* place_8;
  Status* (*Run)(Session* session, const RunOptions* options,
                 const char* const* input_names, const Value* const* inputs,
                 size_t input_count, const char* const* output_names,
                 size_t output_count, Value** outputs);
  Status* (*CreateSessionOptions)(SessionOptions** options);
  void* places_11_to_22[12];
  Status* (*SetSessionGraphOptimizationLevel)(SessionOptions* options,
                                              int level);
  Status* (*SetIntraOpNumThreads)(SessionOptions* options, int threads);
  Status* (*SetInterOpNumThreads)(SessionOptions* options, int threads);
  void* places_26_to_29[4];
  Status* (*SessionGetInputCount)(const Session* session, size_t* count);
  Status* (*SessionGetOutputCount)(const Session* session, size_t* count);
  void* place_32;
  Status* (*SessionGetInputTypeInfo)(const Session* session, size_t index,
                                     TypeInfo** type);
  Status* (*SessionGetOutputTypeInfo)(const Session* session, size_t index,
                                      TypeInfo** type);
  void* place_35;
  Status* (*SessionGetInputName)(const Session* session, size_t index,
                                 Allocator* allocator, char** name);
  Status* (*SessionGetOutputName)(const Session* session, size_t index,
                                  Allocator* allocator, char** name);
  void* places_38_to_48[11];
  Status* (*CreateTensorWithDataAsOrtValue)(const MemoryInfo* memory,
                                            void* data, size_t bytes,
                                            const int64_t* dims, size_t rank,
                                            int element_type, Value** value);
  Status* (*IsTensor)(const Value* value, int* is_tensor);
  Status* (*GetTensorMutableData)(Value* value, void** data);
  void* places_52_to_54[3];
  Status* (*CastTypeInfoToTensorInfo)(const TypeInfo* type,
                                      const TensorShape** shape);
  void* places_56_to_59[4];
  Status* (*GetTensorElementType)(const TensorShape* shape, int* element_type);
  Status* (*GetDimensionsCount)(const TensorShape* shape, size_t* rank);
  Status* (*GetDimensions)(const TensorShape* shape, int64_t* dims,
                           size_t rank);
  void* places_63_to_64[2];
  Status* (*GetTensorTypeAndShape)(const Value* value, TensorShape** shape);
  void* places_66_to_68[3];
  Status* (*CreateCpuMemoryInfo)(int allocator_type, int memory_type,
                                 MemoryInfo** memory);
  void* places_70_to_75[6];
  Status* (*AllocatorFree)(Allocator* allocator, void* block);
  void* place_77;
  Status* (*GetAllocatorWithDefaultOptions)(Allocator** allocator);
  void* places_79_to_91[13];
  void (*ReleaseEnv)(Env* env);
  void (*ReleaseStatus)(Status* status);
  void (*ReleaseMemoryInfo)(MemoryInfo* memory);
  void (*ReleaseSession)(Session* session);
  void (*ReleaseValue)(Value* value);
  void* place_97;
  void (*ReleaseTypeInfo)(TypeInfo* type);
  void (*ReleaseTensorTypeAndShapeInfo)(TensorShape* shape);
  void (*ReleaseSessionOptions)(SessionOptions* options);
  void* places_101_to_129[29];
  Status* (*AddSessionConfigEntry)(SessionOptions* options, const char* key,
                                   const char* value);
};

constexpr size_t PlaceOf(size_t offset) { return offset / sizeof(void*); }
static_assert(PlaceOf(offsetof(Api, GetErrorMessage)) == 2);
static_assert(PlaceOf(offsetof(Api, CreateSession)) == 7);
static_assert(PlaceOf(offsetof(Api, CreateSessionOptions)) == 10);
static_assert(PlaceOf(offsetof(Api, SetInterOpNumThreads)) == 25);
static_assert(PlaceOf(offsetof(Api, SessionGetOutputName)) == 37);
static_assert(PlaceOf(offsetof(Api, GetTensorMutableData)) == 51);
static_assert(PlaceOf(offsetof(Api, CastTypeInfoToTensorInfo)) == 55);
static_assert(PlaceOf(offsetof(Api, GetDimensions)) == 62);
static_assert(PlaceOf(offsetof(Api, GetTensorTypeAndShape)) == 65);
static_assert(PlaceOf(offsetof(Api, CreateCpuMemoryInfo)) == 69);
static_assert(PlaceOf(offsetof(Api, AllocatorFree)) == 76);
static_assert(PlaceOf(offsetof(Api, GetAllocatorWithDefaultOptions)) == 78);
static_assert(PlaceOf(offsetof(Api, ReleaseEnv)) == 92);
static_assert(PlaceOf(offsetof(Api, ReleaseSessionOptions)) == 100);
static_assert(PlaceOf(offsetof(Api, AddSessionConfigEntry)) == 130);

// What OrtGetApiBase() returns.
struct ApiBase {
  const Api* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

}  // namespace optfarm::engine_host::ort

#endif  // OPTFARM_ENGINE_HOST_ONNXRUNTIME_API_H_
