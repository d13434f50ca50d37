/* The cycles of a prediction on an ATmega1284P in simavr: printed over the serial line. Timer 1 counts cycles. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include "model.h"

static volatile uint16_t overflows;

ISR(TIMER1_OVF_vect)
{
    overflows++;
}

static uint32_t now(void)
{
    cli();
    const uint16_t low = TCNT1;
    const uint16_t high = (uint16_t)(overflows + ((TIFR1 & 1) && low < 0x8000));
    sei();
    return (uint32_t)high << 16 | low;
}

static void put(char letter)
{
    while (!(UCSR0A & (1 << UDRE0)))
        ;
    UDR0 = (uint8_t)letter;
}

static const ROW_TYPE rows[ROWS][MODEL_FEATURES] = { ROW_NUMBERS };
volatile int found;

int main(void)
{
    UCSR0B = 1 << TXEN0;
    TIMSK1 = 1;
    TCCR1B = 1;
    sei();
    const uint32_t begin = now();
    for (uint8_t i = 0; i < ROWS; i++)
        found = (int)model_predict(rows[i]);
    uint32_t cycles = (now() - begin) / ROWS;
    char digits[11];
    uint8_t count = 0;
    do {
        digits[count++] = (char)('0' + cycles % 10);
        cycles /= 10;
    } while (cycles);
    while (count--)
        put(digits[count]);
    put('\n');
    for (volatile uint32_t i = 0; i < 30000; i++)
        ;
    cli();
    sleep_enable();
    sleep_cpu();
    return 0;
}
