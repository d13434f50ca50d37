/* The instructions of a prediction on a Cortex-M in qemu with -icount shift=0: an instruction takes 1 ns of virtual time,
 * which SysTick counts at the board's clock. */
#include <stdint.h>
#include "model.h"

extern uint32_t data_load, data_begin, data_end, bss_begin, bss_end, stack_top;
volatile int found;
static const ROW_TYPE rows[ROWS][MODEL_FEATURES] = { ROW_NUMBERS };

static void call_host(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void reset(void)
{
    for (uint32_t *to = &data_begin, *from = &data_load; to < &data_end;)
        *to++ = *from++;
    for (uint32_t *to = &bss_begin; to < &bss_end;)
        *to++ = 0;
#ifdef __ARM_FP
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* the floating-point unit */
#endif
    volatile uint32_t *const systick = (uint32_t *)0xE000E010;
    systick[1] = 0xFFFFFF;
    systick[2] = 0;
    systick[0] = 5;
    const uint32_t begin = systick[2];
    for (int repeat = 0; repeat < REPEATS; repeat++)
        for (int i = 0; i < ROWS; i++)
            found = (int)model_predict(rows[i]);
    uint32_t ticks = (begin - systick[2]) & 0xFFFFFF;
    char text[12];
    int at = 11;
    text[at] = 0;
    do {
        text[--at] = (char)('0' + ticks % 10);
        ticks /= 10;
    } while (ticks);
    call_host(4, text + at);
    call_host(0x18, (void *)0x20026);
    for (;;)
        ;
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = { &stack_top, (void *)reset };
