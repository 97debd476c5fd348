# How a program is built: PTX by clang or nvcc, and a shared object for the CPU driver.
set(GPU_WORKER_PTX_COMPILER "" CACHE STRING
  "Compiles kernels to PTX: a clang with the NVPTX target, or nvcc. Empty: clang if found, else nvcc")

find_program(GPU_WORKER_CLANG clang)
find_program(GPU_WORKER_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
set(ptx_compiler ${GPU_WORKER_PTX_COMPILER})
if(NOT ptx_compiler AND GPU_WORKER_CLANG)
  set(ptx_compiler ${GPU_WORKER_CLANG})
elseif(NOT ptx_compiler AND GPU_WORKER_NVCC)
  set(ptx_compiler ${GPU_WORKER_NVCC})
elseif(NOT ptx_compiler)
  message(FATAL_ERROR "Nothing compiles kernels to PTX here: install clang (14 or newer; no CUDA toolkit needed) or "
    "nvcc, or name one with -DGPU_WORKER_PTX_COMPILER=/path/to/clang")
endif()

# All three compilers fuse multiplications and additions only by fma_f32(), so that results agree bit for bit.
# Newer GPUs and drivers also run sm_70 and PTX 6.0. nvcc 13 starts at sm_75 and writes PTX 9.0.
set(clang_ptx_flags -x cuda -std=c++17 --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -ffreestanding
  -O3 -ffp-contract=off -Wall -Wextra -Werror -S)
set(nvcc_ptx_flags -x cu -std=c++17 -ptx -arch=compute_75 -O3 -fmad=false -Werror all-warnings)
set(cpu_flags -O3 -ffp-contract=off -fno-math-errno
  -Wall -Wextra -Wshadow -Wconversion -Wundef -Wno-unused-parameter -Werror)
set(kernel_headers kernel.h kernel_atomic.h kernel_cpu.h kernel_functions.h kernel_half.h kernel_math.h kernel_random.h
  kernel_warp.h optimizer.h)
list(TRANSFORM kernel_headers PREPEND ${CMAKE_CURRENT_LIST_DIR}/)

# ptx_image(SOURCE COMPILER OUTPUT): writes the PTX, unless it calls a function that is not in it.
function(ptx_image source compiler output)
  get_filename_component(compiler_name ${compiler} NAME)
  if(compiler_name MATCHES "nvcc")
    set(flags ${nvcc_ptx_flags})
  else()
    set(flags ${clang_ptx_flags})
  endif()
  set(check ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check_ptx.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${compiler} ${flags} -I ${CMAKE_CURRENT_FUNCTION_LIST_DIR} -o ${output}.unchecked ${source}
    COMMAND ${CMAKE_COMMAND} -D PTX=${output}.unchecked -P ${check}
    COMMAND ${CMAKE_COMMAND} -E rename ${output}.unchecked ${output}
    DEPENDS ${source} ${kernel_headers} ${check}
    COMMENT "PTX by ${compiler_name}: ${output}" VERBATIM)
endfunction()

# gpu_program(NAME FOLDER): NAME/NAME.c and NAME/program.yaml become FOLDER/NAME/, as a worker loads it.
function(gpu_program name folder)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${name}/${name}.c)
  file(MAKE_DIRECTORY ${folder}/${name})
  configure_file(${name}/program.yaml ${folder}/${name}/program.yaml COPYONLY)

  ptx_image(${source} ${ptx_compiler} ${folder}/${name}/${name}.ptx)
  add_custom_target(program_${name}_ptx ALL DEPENDS ${folder}/${name}/${name}.ptx)

  # Never sanitized or unoptimised, because this image is shipped, and it shares no code with the worker.
  add_library(program_${name}_cpu MODULE ${source})
  set_target_properties(program_${name}_cpu PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} SUFFIX .so LIBRARY_OUTPUT_DIRECTORY ${folder}/${name})
  target_include_directories(program_${name}_cpu PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  target_compile_options(program_${name}_cpu PRIVATE ${cpu_flags})
  target_link_options(program_${name}_cpu PRIVATE -Wl,-z,defs)
  target_link_libraries(program_${name}_cpu PRIVATE m)

  # A test builds this, and `all` does not: where nvcc is installed, it must compile every program.
  if(GPU_WORKER_NVCC)
    if(NOT TARGET programs_nvcc)
      add_custom_target(programs_nvcc)
    endif()
    ptx_image(${source} ${GPU_WORKER_NVCC} ${CMAKE_CURRENT_BINARY_DIR}/${name}.nvcc.ptx)
    add_custom_target(program_${name}_nvcc DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${name}.nvcc.ptx)
    add_dependencies(programs_nvcc program_${name}_nvcc)
  endif()
endfunction()
